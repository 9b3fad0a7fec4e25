//! The file format of tapes (docs/tape.md): layout, checks and reading.

mod check;
mod data_set;
mod generations;
mod lane;
mod layout;
mod open;
mod operation;
mod reader;
mod reuse;

pub use check::TapeError;
pub use data_set::DataSet;
pub use lane::Lane;
pub(crate) use layout::{COUNTER_START, HEADER_BYTES, Header, MAX_KEY_BYTES, OP_BYTES};
pub use layout::{FLAG_NOREPLY, value_offset};
pub use operation::{Op, Verb};
pub use reader::{RunKeys, Tape};
pub use reuse::{Dependence, Reuse};
