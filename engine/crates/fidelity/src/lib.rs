//! Are the numbers of the native client right? Its scheduling, connections, timeouts, recording and
//! merging run for minutes of simulated time against a scripted server. The results are compared with
//! values that are known beforehand, from formulas, and with what the simulated network saw of each
//! request.

pub mod cases;
mod check;
mod ground_truth;
mod script;
mod simulated_network;
#[cfg(test)]
mod slices;
mod trial;

pub use cases::{CASES, Case};
pub use check::{CaseResult, Check, Unit, Verdict};
pub use trial::TrialResult;
