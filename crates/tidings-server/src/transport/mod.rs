//! How bytes come and go: stdio for one client, Streamable HTTP for many.

mod accept;
mod call;
mod guard;
pub mod http;
mod intake;
mod legacy;
mod modern;
mod reply;
mod session;
pub mod stdio;
mod stream;

pub(crate) use call::Call;
