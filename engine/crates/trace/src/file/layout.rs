//! The layout of a trace file. All numbers are little-endian.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) const MAGIC: [u8; 8] = *b"cmtrace\x01";

/// The kinds of blocks, in the order of the file: one origin, any number of records, one summary.
pub(crate) const ORIGIN: u8 = 1;
pub(crate) const RECORDS: u8 = 2;
pub(crate) const SUMMARY: u8 = 3;

/// Kind, whether records have times, two bytes of zeros, length of the content, number of records, checksum.
pub(crate) const HEAD_BYTES: usize = 16;
/// The part of the head that the checksum covers, before the content.
pub(crate) const CHECKED_HEAD_BYTES: usize = 12;

pub(crate) const MOST_RECORDS: u32 = 1 << 16;
/// Keys, at 256 bytes, and records, at 64.
pub(crate) const MOST_CONTENT_BYTES: u32 = MOST_RECORDS * (256 + 64);
pub(crate) const MOST_OPERATIONS: usize = 256;
pub(crate) const MOST_NAME_BYTES: usize = 64;

/// Bits of a record's first byte: the fields that follow, and two facts.
pub(crate) const HAS_STEP: u8 = 1;
pub(crate) const HAS_LENGTH: u8 = 1 << 1;
pub(crate) const HAS_TTL: u8 = 1 << 2;
pub(crate) const HAS_COUNT: u8 = 1 << 3;
/// One request with the record before.
pub(crate) const IS_JOINED: u8 = 1 << 4;
pub(crate) const HAS_OUTCOME: u8 = 1 << 5;
pub(crate) const SUCCEEDED: u8 = 1 << 6;
/// The operation or the client differs from the record before.
pub(crate) const HAS_OTHER_SOURCE: u8 = 1 << 7;

/// Whether a file shows the keys of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Keys {
    /// As clients sent them, or as another trace had them.
    #[default]
    Plain,
    /// By a keyed hash whose key was thrown away.
    Anonymous,
}

/// The origin of the records, known before the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The format or the server that was read.
    pub source: String,
    pub keys: Keys,
    /// One key of `sampled` is in the file, with all its requests.
    #[serde(default = "one")]
    pub sampled: u32,
}

impl Default for Origin {
    fn default() -> Origin {
        Origin { source: String::new(), keys: Keys::Plain, sampled: one() }
    }
}

fn one() -> u32 {
    1
}

/// The facts after the last record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub records: u64,
    /// The operations that were read, before keys were sampled, by name.
    #[serde(default)]
    pub operations: BTreeMap<String, u64>,
    /// Operations that are not in the file, by the reason.
    #[serde(default)]
    pub left_out: BTreeMap<String, u64>,
    /// Lines about something else than an operation of a client.
    #[serde(default)]
    pub other_lines: BTreeMap<String, u64>,
    /// The growth of the server's own counters during the recording.
    #[serde(default)]
    pub server: BTreeMap<String, u64>,
    /// The number of times that the connection to the server was lost and reopened: events in between are missing.
    #[serde(default)]
    pub reconnects: u64,
    /// The columns of the read file that had no meaning here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_columns: Vec<String>,
}
