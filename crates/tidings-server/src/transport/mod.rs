//! How bytes come and go: stdio for one client, Streamable HTTP for many.

mod accept;
mod call;
mod chunk;
mod guard;
pub mod http;
mod intake;
mod legacy;
mod lenient;
mod line;
mod modern;
mod overlong;
mod reply;
mod session;
pub mod stdio;
mod stream;
mod writer;

pub(crate) use call::Call;
pub(crate) use line::Line;
