//! One operation on its way, and what it came to.

mod pending;
mod result;

pub use pending::Pending;
pub(crate) use result::Timestamps;
pub use result::{Failure, OperationCounts};
