//! CSV with a header: `op` and `key`, and optionally `time` (seconds), `size` (bytes) and `ttl`
//! (seconds). Other columns are ignored.

use crate::event::{TraceEvent, action, exptime, length, seconds};

/// The position of each column.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    key: usize,
    op: usize,
    time: Option<usize>,
    size: Option<usize>,
    ttl: Option<usize>,
    count: usize,
}

/// The positions of columns by name; `None` if a required column is missing.
pub(crate) fn column_positions<const N: usize>(
    header: &str,
    names: [&str; N],
) -> [Option<usize>; N] {
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    names.map(|name| columns.iter().position(|column| column.eq_ignore_ascii_case(name)))
}

impl Columns {
    pub(crate) fn of(header: &str) -> Option<Columns> {
        let [key, op, time, size, ttl] =
            column_positions(header, ["key", "op", "time", "size", "ttl"]);
        let count = header.split(',').count();
        Some(Columns { key: key?, op: op?, time, size, ttl, count })
    }

    pub(crate) fn event(&self, line: &str) -> Result<TraceEvent, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != self.count {
            return Err(format!("{} fields, the header has {}", fields.len(), self.count));
        }
        let given = |at: Option<usize>| at.map(|at| fields[at]).filter(|text| !text.is_empty());
        Ok(TraceEvent {
            at_ns: given(self.time).map(seconds).transpose()?,
            key: fields[self.key].to_owned(),
            key_bytes: None,
            action: action(fields[self.op])?,
            length: given(self.size).map(length).transpose()?,
            exptime_s: given(self.ttl).map_or(Ok(0), exptime)?,
            count: 1,
        })
    }
}
