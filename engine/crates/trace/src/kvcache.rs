//! The traces of Meta's key-value cache that CacheLib publishes, with a header. 2022:
//! `key,op,size,op_count,key_size[,ttl]`. 2024: `op_time,key,key_size,op,op_count,size,…,ttl,…`.

use crate::csv::{column_positions, unused_columns};
use crate::event::{TraceEvent, action, count, exptime, length, number, seconds};

const NAMES: [&str; 7] = ["key", "op", "size", "op_count", "key_size", "op_time", "ttl"];

/// The position of each column.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    key: usize,
    op: usize,
    size: usize,
    op_count: usize,
    key_size: usize,
    op_time: Option<usize>,
    ttl: Option<usize>,
    count: usize,
}

impl Columns {
    pub(crate) fn of(header: &str) -> Option<Columns> {
        let [key, op, size, op_count, key_size, op_time, ttl] = column_positions(header, NAMES);
        Some(Columns {
            key: key?,
            op: op?,
            size: size?,
            op_count: op_count?,
            key_size: key_size?,
            op_time,
            ttl,
            count: header.split(',').count(),
        })
    }

    /// The columns of the header that are not used.
    pub(crate) fn unused(header: &str) -> Vec<String> {
        unused_columns(header, &NAMES)
    }

    pub(crate) fn event(&self, line: &str) -> Result<TraceEvent, String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        if fields.len() != self.count {
            return Err(format!("{} fields, the header has {}", fields.len(), self.count));
        }
        let bytes = length(fields[self.size])?;
        let ttl = self.ttl.map(|at| fields[at]).filter(|text| !text.is_empty());
        Ok(TraceEvent {
            at_ns: self.op_time.map(|at| seconds(fields[at])).transpose()?,
            number: 0,
            key: fields[self.key].to_owned(),
            key_bytes: Some(number(fields[self.key_size], "key size", u64::from(u32::MAX))? as u32),
            action: action(fields[self.op])?,
            length: (bytes > 0).then_some(bytes),
            exptime_s: ttl.map_or(Ok(0), exptime)?,
            count: count(fields[self.op_count])?,
            client: None,
            succeeded: None,
            joined: false,
        })
    }
}
