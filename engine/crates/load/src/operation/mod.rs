//! One operation in flight, and its result.

mod pending;
mod result;

pub use pending::Pending;
pub(crate) use result::Timestamps;
pub use result::{Failure, OperationCounts};
