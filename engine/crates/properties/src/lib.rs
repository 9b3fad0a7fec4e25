//! Properties that must hold for every parser and for the store, whatever the input: one function for each.
//! Tests call them with random inputs that are nearly valid, fuzz targets with the inputs that the fuzzer
//! generates, and the replay test with the fuzzer's seeds and with the inputs that once failed.

#[cfg(feature = "programs")]
pub mod between;
pub mod cases;
pub mod client;
#[cfg(feature = "programs")]
pub mod connections;
#[cfg(feature = "programs")]
pub mod datagrams;
#[cfg(feature = "options")]
pub mod options;
pub mod packets;
#[cfg(feature = "programs")]
pub mod player;
#[cfg(feature = "programs")]
pub mod scripts;
#[cfg(feature = "programs")]
pub mod seeds;
#[cfg(feature = "programs")]
pub mod session;
pub mod store;
pub mod store_actions;
pub mod tapes;
#[cfg(feature = "programs")]
pub mod targets;
mod time;
pub mod traces;

#[cfg(feature = "programs")]
pub use targets::{TARGETS, Target};
pub use time::NOW_S;
