//! The classic text protocol.

pub mod command;
pub mod encode;
mod fast_path;
pub mod keys;
pub mod refusal;
pub mod reply;
pub mod request;
