//! Transports: stdio for one client, Streamable HTTP for many.

mod accept;
mod beside;
mod body;
mod budget;
mod call;
mod chunk;
mod gate;
pub(crate) mod guard;
pub mod http;
mod intake;
mod legacy;
mod lenient;
mod line;
mod modern;
mod overlong;
mod reply;
mod seldom;
mod serve;
mod session;
mod shares;
pub mod stdio;
mod stream;
mod tail;
mod writer;
