//! libCacheSim's binary format oracleGeneral: for each request 24 bytes, little-endian, without a header: the time in
//! seconds (u32), the object (u64), its size (u32), and when it is used next (i64), which is not needed.

use std::io::BufRead;

use cachemark_tape::Verb;

use crate::event::MAX_LENGTH;
use crate::file::Record;

const RECORD_BYTES: usize = 24;
const SECOND_NS: u64 = 1_000_000_000;

/// The requests of a file, each a get.
pub(crate) struct OracleGeneral<'a> {
    from: &'a mut dyn BufRead,
    records: u64,
    last_s: u32,
    key: itoa::Buffer,
}

impl<'a> OracleGeneral<'a> {
    pub(crate) fn new(from: &'a mut dyn BufRead) -> OracleGeneral<'a> {
        OracleGeneral { from, records: 0, last_s: 0, key: itoa::Buffer::new() }
    }

    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// The next request. An error names it by its number.
    pub(crate) fn next(&mut self) -> Result<Option<Record<'_>>, String> {
        let number = self.records + 1;
        let at = |error: String| format!("record {number}: {error}");
        let unreadable = |error: std::io::Error| at(format!("it cannot be read: {error}"));
        if self.from.fill_buf().map_err(unreadable)?.is_empty() {
            return if number == 1 { Err("it is empty".to_owned()) } else { Ok(None) };
        }
        let mut bytes = [0; RECORD_BYTES];
        self.from.read_exact(&mut bytes).map_err(unreadable)?;
        let number32 = |begin: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[begin + i]));
        let object = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|i| bytes[4 + i]));
        let (at_s, size) = (number32(0), number32(12));
        if at_s < self.last_s {
            return Err(at("its time is before that of the one above".to_owned()));
        }
        if u64::from(size) > MAX_LENGTH {
            return Err(at(format!("value size {size}: at most {MAX_LENGTH}")));
        }
        (self.records, self.last_s) = (number, at_s);
        Ok(Some(Record {
            at_ns: Some(u64::from(at_s) * SECOND_NS),
            operation: Verb::Get.name(),
            key: self.key.format(object).as_bytes(),
            key_bytes: None,
            length: Some(size),
            ttl_s: 0,
            count: 1,
            client: None,
            succeeded: None,
            joined: false,
        }))
    }
}
