//! What the tests share: a hub with a source they can drive, and clients that write down all they hear.

pub(crate) mod client;
pub(crate) mod demo;
pub(crate) mod garden;
pub(crate) mod rogue;
