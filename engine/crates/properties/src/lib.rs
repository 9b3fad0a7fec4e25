//! Properties that must hold for every parser and for the store, whatever the input: one function for each.
//! Tests call them with random inputs that are nearly valid, fuzz targets with the inputs that the fuzzer
//! generates, and the replay test with the fuzzer's seeds and with the inputs that once failed.

pub mod between;
pub mod cases;
pub mod client;
pub mod connections;
pub mod datagrams;
#[cfg(feature = "options")]
pub mod options;
pub mod player;
pub mod scripts;
pub mod seeds;
pub mod session;
pub mod store;
pub mod store_actions;
pub mod tapes;
pub mod targets;
pub mod traces;

pub use targets::{TARGETS, Target};
