//! How bytes come and go: stdio for one client, Streamable HTTP for many.

mod accept;
mod body;
mod budget;
mod call;
mod chunk;
mod gate;
mod guard;
pub mod http;
mod intake;
mod legacy;
mod lenient;
mod line;
mod modern;
mod overlong;
mod reply;
mod seldom;
mod session;
mod shares;
pub mod stdio;
mod stream;
mod weight;
mod writer;

pub(crate) use call::Call;
pub(crate) use line::Line;
pub(crate) use modern::Beside;
pub(crate) use weight::of as weight_of;
