//! The meta commands of the text protocol.

pub mod client;
pub mod request;
