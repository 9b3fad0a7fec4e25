//! How a trace of lines is read: options that the verbs share.

use cachemark_trace::{Columns, Format, ImportOptions};

/// How a trace of lines is read.
#[derive(clap::Args)]
pub(super) struct Reading {
    /// twitter, kvcache, memcached or csv [default: recognised from the first lines]
    #[arg(long)]
    trace_format: Option<Format>,
    /// The columns of a trace without a header, such as time:ms,op,key,size
    #[arg(long, conflicts_with = "trace_format")]
    columns: Option<Columns>,
}

impl Reading {
    pub(super) fn options(&self) -> ImportOptions {
        ImportOptions {
            format: self.trace_format,
            columns: self.columns.clone(),
            ..ImportOptions::default()
        }
    }
}
