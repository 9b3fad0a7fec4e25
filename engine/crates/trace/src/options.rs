//! How a trace is read.

use crate::csv::Columns;
use crate::format::Format;

/// The treatment of the gets of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gets {
    /// They are played as they were logged.
    #[default]
    AsLogged,
    /// One that misses is followed by a set, as in a program that fills its cache.
    CacheAside,
}

/// How a trace is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// `None`: the first lines decide.
    pub format: Option<Format>,
    /// The columns of a file without a header.
    pub columns: Option<Columns>,
    pub gets: Gets,
    pub max_ops: u64,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions { format: None, columns: None, gets: Gets::AsLogged, max_ops: u64::MAX }
    }
}
