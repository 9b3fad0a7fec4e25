//! Tapes: the exact list of operations that every client plays, made from a workload.
//!
//! `format` is the file format (docs/tape.md): layout, checks and reading. `workload` is what the user
//! asks for. `generate` makes the bytes of a tape. The only I/O here is opening a file.
//!
//! ```
//! use cachemark_tape::{Lane, Schedule, Tape, Workload, generate, parse_mix};
//!
//! // Nine gets for each set, on 500 keys: a thousand operations in a closed loop, from seed 1.
//! let workload = Workload { keys: 500, mix: parse_mix("get=9,set=1")?, ..Workload::default() };
//! let bytes = generate(&workload, &Schedule::closed(1_000), 1)?;
//! assert_eq!(bytes, generate(&workload, &Schedule::closed(1_000), 1)?);
//!
//! let tape = Tape::from_bytes(bytes).expect("generate makes tapes that can be read");
//! assert_eq!((tape.key_count(), tape.op_count()), (500, 1_000));
//!
//! // The first of two callers plays every second operation. After its last one it begins again.
//! let mut lane = Lane::new(0, 2, tape.op_count(), tape.group()).expect("it has operations");
//! for _ in 0..500 {
//!     let (record, _pass) = lane.next_record();
//!     let op = tape.op(record);
//!     let (key, value) = (tape.key(op.key), tape.value(op.key, tape.value_length(op.key)));
//!     assert_eq!((key.len(), value.len()), (20, 100));
//! }
//! assert_eq!(lane.next_record(), (0, 1));
//! # Ok::<(), cachemark_tape::WorkloadError>(())
//! ```

mod format;
mod generate;
mod random;
mod workload;

pub use format::{
    DataSet, Dependence, FLAG_NOREPLY, Lane, Op, Reuse, RunKeys, Tape, TapeError, Verb,
    value_offset,
};
pub use generate::{Recording, ReplaySchedule, generate};
pub use workload::{
    Arrivals, Distances, IntegerDistribution, IntegerRange, KeyDistribution, KeyPart, KeyShape,
    MixEntry, Order, Recency, Schedule, SequenceStep, Think, Workload, WorkloadError, bytes,
    parse_mix, parse_sequence, seconds,
};

/// The example of the README is a test, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
