//! The floor: what a client and a server cost that do nothing but move bytes.
//!
//! The null client writes requests that were made beforehand and reads replies into a scratch
//! buffer; the null responder counts requests and writes the same reply for each. Neither parses,
//! verifies or records. What is above their CPU time per operation is the program's own.

mod client;
mod repeated_bytes;
mod responder;

pub use client::{FloorResult, RequestPlan, play};
pub use responder::{RequestCounting, Responder};
