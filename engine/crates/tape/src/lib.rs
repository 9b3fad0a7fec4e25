//! Tapes: a workload made concrete, the exact list of operations that every client plays.
//!
//! `format` owns the bytes (docs/tape.md), `reader` opens them, `check` makes that safe, `workload` says what is
//! wanted, `generate` makes the bytes of it. Nothing here does I/O but opening a file.

mod check;
mod format;
mod generate;
mod keys;
mod lane;
mod law;
mod operations;
mod order;
mod popularity;
mod reader;
mod recorded;
mod schedule;
mod workload;

pub use check::TapeError;
pub use format::{FLAG_NOREPLY, Op, Verb, value_offset};
pub use generate::generate;
pub use lane::Lane;
pub use law::{bytes, seconds};
pub use reader::{RunKeys, Tape};
pub use recorded::{Recorded, Replay};
pub use schedule::{Arrivals, Think};
pub use workload::{
    Distribution, KeyShape, Kind, Law, Order, Schedule, Span, Step, Workload, WorkloadError,
    parse_mix, parse_sequence,
};
