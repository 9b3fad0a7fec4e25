//! Helpers for the tests of distributions.

use cachemark_tape::{Schedule, Tape, Workload, generate};

/// sup
///
/// Fₙ − F
///
/// of a million draws is below this in 99 of 100 samples (Dvoretzky, Kiefer and Wolfowitz, with
/// Massart's constant).
pub const DKW_99: f64 = 0.00163;

/// A tape of a workload in a closed loop.
pub fn open(workload: &Workload, ops: u64) -> Tape {
    let bytes = generate(workload, &Schedule::closed(ops), 1).expect("a workload that can be made");
    Tape::from_bytes(bytes).expect("our own tape")
}
