//! Tapes: a workload made concrete, the exact list of operations that every client plays.
//!
//! `format` owns the bytes (docs/tape.md), `reader` opens them, `check` makes that safe, `workload` says what is
//! wanted, `generate` makes the bytes of it. Nothing here does I/O but opening a file.

mod format;
mod generate;
mod random;
mod workload;

pub use format::{FLAG_NOREPLY, Lane, Op, RunKeys, Tape, TapeError, Verb, value_offset};
pub use generate::{Recording, ReplaySchedule, generate};
pub use workload::{
    Arrivals, IntegerDistribution, IntegerRange, KeyDistribution, KeyShape, MixEntry, Order,
    Schedule, SequenceStep, Think, Workload, WorkloadError, bytes, parse_mix, parse_sequence,
    seconds,
};
