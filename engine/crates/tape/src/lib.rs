//! Tapes: the exact list of operations that every client plays, made from a workload.
//!
//! `format` is the file format (docs/tape.md): layout, checks and reading. `workload` is what the user
//! asks for. `generate` makes the bytes of a tape. The only I/O here is opening a file.

mod format;
mod generate;
mod random;
mod workload;

pub use format::{DataSet, FLAG_NOREPLY, Lane, Op, RunKeys, Tape, TapeError, Verb, value_offset};
pub use generate::{Recording, ReplaySchedule, generate};
pub use workload::{
    Arrivals, IntegerDistribution, IntegerRange, KeyDistribution, KeyShape, MixEntry, Order,
    Schedule, SequenceStep, Think, Workload, WorkloadError, bytes, parse_mix, parse_sequence,
    seconds,
};
