//! Is the native client right? Its scheduler, connections, time-outs, recorder and merging play
//! minutes of virtual time against servers that are scripts, and are held against answers that are
//! known beforehand: from a formula, and from what the world itself saw of each request.

pub mod cases;
mod check;
mod ground_truth;
mod script;
mod simulated_network;
mod trial;

pub use cases::{CASES, Case};
pub use check::{CaseResult, Check, Unit, Verdict};
pub use trial::TrialResult;
