//! Why a workload is invalid.

use std::fmt;

/// The error of a workload, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadError(pub String);

impl fmt::Display for WorkloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for WorkloadError {}

pub(crate) fn invalid<T>(text: impl Into<String>) -> Result<T, WorkloadError> {
    Err(WorkloadError(text.into()))
}
