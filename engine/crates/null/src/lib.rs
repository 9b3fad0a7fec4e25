//! The floor: the cost of a client and a server that only move bytes.
//!
//! The null client writes prepared requests and reads replies into a scratch buffer. The null responder
//! counts requests and writes the same reply for each. Neither parses, verifies or records. The CPU
//! time of another program above this floor is its own work.

mod client;
mod repeated_bytes;
mod responder;

pub use client::{FloorResult, RequestPlan, play};
pub use responder::{RequestCounting, Responder};
