//! What must hold of every parser and of the store, whatever the input: one function for each
//! property. Tests call them with inputs that are drawn near to what is right, fuzz targets with
//! inputs that a search for new paths finds, and the replay test with the seeds of that search and
//! with what it has ever found.

pub mod cases;
pub mod client;
pub mod connections;
pub mod datagrams;
pub mod draws;
#[cfg(feature = "options")]
pub mod options;
pub mod player;
pub mod scripts;
pub mod seeds;
pub mod session;
pub mod store;
pub mod tapes;
pub mod targets;
pub mod traces;

pub use targets::{TARGETS, Target};
