//! The effect of each command on the store, and its reply: a folder for each protocol, whose `mod.rs` dispatches.

pub mod binary;
pub mod context;
mod decimal;
pub mod meta;
pub mod observe;
pub mod text;
mod uploads;
