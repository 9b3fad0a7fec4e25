//! cachemark's own trace format: blocks of records, each with its checksum, which are read and written one at a time.
//!
//! `docs/trace-format.md` describes it. `layout` has its numbers, `write` and `read` its two sides.

pub(crate) mod layout;
mod read;
mod write;

pub use layout::{Keys, Origin, Summary};
pub use read::{Block, Record, TraceReader};
pub use write::TraceWriter;
