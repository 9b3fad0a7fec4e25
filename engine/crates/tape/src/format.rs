//! The bytes of a tape, version 2: header, sections, operation records. docs/tape.md is the text.

pub const MAGIC: [u8; 8] = *b"CMTAPE\0\0";
pub const VERSION: u32 = 2;
pub const HEADER_BYTES: usize = 184;
pub const OP_BYTES: usize = 16;
pub const FLAG_NOREPLY: u8 = 1;
pub const FLAG_UNVERIFIED: u64 = 1;
pub const KEY_BYTES_MAX: usize = 250;
/// What a counter is stored as.
pub const COUNTER_START: &[u8; 10] = b"1000000000";

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Verb {
    Get = 1,
    Gets = 2,
    Mget = 3,
    Set = 4,
    Add = 5,
    Replace = 6,
    Delete = 7,
    Touch = 8,
    Gat = 9,
    Version = 10,
    Mset = 11,
    Append = 12,
    Prepend = 13,
    Cas = 14,
    Incr = 15,
    Decr = 16,
    Flush = 17,
    /// What a program does with a cache: a get, and where it finds nothing, a set of the key.
    Fetch = 20,
}

impl Verb {
    pub const ALL: [Verb; 18] = [
        Verb::Get,
        Verb::Gets,
        Verb::Mget,
        Verb::Set,
        Verb::Add,
        Verb::Replace,
        Verb::Delete,
        Verb::Touch,
        Verb::Gat,
        Verb::Version,
        Verb::Mset,
        Verb::Append,
        Verb::Prepend,
        Verb::Cas,
        Verb::Incr,
        Verb::Decr,
        Verb::Flush,
        Verb::Fetch,
    ];

    /// The verb of a record's first byte; unknown ones are `None`.
    pub fn from_byte(byte: u8) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| *verb as u8 == byte)
    }

    pub fn name(self) -> &'static str {
        self.kind(false)
    }

    /// The name under which results are reported.
    pub fn kind(self, noreply: bool) -> &'static str {
        match (self, noreply) {
            (Verb::Get, _) => "get",
            (Verb::Gets, _) => "gets",
            (Verb::Mget, _) => "mget",
            (Verb::Gat, _) => "gat",
            (Verb::Version, _) => "version",
            (Verb::Cas, _) => "cas",
            (Verb::Fetch, _) => "fetch",
            (Verb::Set, false) => "set",
            (Verb::Add, false) => "add",
            (Verb::Replace, false) => "replace",
            (Verb::Delete, false) => "delete",
            (Verb::Touch, false) => "touch",
            (Verb::Mset, false) => "mset",
            (Verb::Append, false) => "append",
            (Verb::Prepend, false) => "prepend",
            (Verb::Flush, false) => "flush",
            (Verb::Incr, false) => "incr",
            (Verb::Decr, false) => "decr",
            (Verb::Set, true) => "set_noreply",
            (Verb::Add, true) => "add_noreply",
            (Verb::Replace, true) => "replace_noreply",
            (Verb::Delete, true) => "delete_noreply",
            (Verb::Touch, true) => "touch_noreply",
            (Verb::Mset, true) => "mset_noreply",
            (Verb::Append, true) => "append_noreply",
            (Verb::Prepend, true) => "prepend_noreply",
            (Verb::Flush, true) => "flush_noreply",
            (Verb::Incr, true) => "incr_noreply",
            (Verb::Decr, true) => "decr_noreply",
        }
    }

    /// Whether the text protocol lets this verb go unanswered.
    pub fn may_be_noreply(self) -> bool {
        use Verb::{Cas, Fetch, Gat, Get, Gets, Mget, Version};
        !matches!(self, Get | Gets | Mget | Gat | Version | Cas | Fetch)
    }

    /// Whether the record's `run` names several keys.
    pub fn has_run(self) -> bool {
        matches!(self, Verb::Mget | Verb::Mset)
    }

    /// Whether it names no key.
    pub fn is_keyless(self) -> bool {
        matches!(self, Verb::Version | Verb::Flush)
    }

    /// Whether it adds to what is there, and that nothing: values stay what they are.
    pub fn extends(self) -> bool {
        matches!(self, Verb::Append | Verb::Prepend)
    }

    /// Whether it may store a value of its own.
    pub fn writes(self) -> bool {
        use Verb::{Add, Cas, Fetch, Mset, Replace, Set};
        matches!(self, Set | Add | Replace | Mset | Cas | Fetch)
    }

    /// Whether it asks for values and stores none.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat)
    }

    /// Whether it changes what is there without a value of its own.
    pub fn changes(self) -> bool {
        use Verb::{Append, Decr, Delete, Flush, Incr, Prepend, Touch};
        matches!(self, Delete | Touch | Incr | Decr | Append | Prepend | Flush)
    }

    /// Whether it works on counters, and on nothing else.
    pub fn counts(self) -> bool {
        matches!(self, Verb::Incr | Verb::Decr)
    }
}

/// One operation record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub verb: Verb,
    pub noreply: bool,
    /// Number of keys: 1, a run's length, or 0 for `version` and `flush`.
    pub run: u16,
    /// Key index; for a run the index of its first entry in the run table.
    pub key: u32,
    /// Value length of a write of one key in bytes; the amount of an `incr` or `decr`.
    pub length: u32,
    pub exptime_s: u32,
}

impl Op {
    pub fn to_bytes(self) -> [u8; OP_BYTES] {
        let mut bytes = [0; OP_BYTES];
        bytes[0] = self.verb as u8;
        bytes[1] = if self.noreply { FLAG_NOREPLY } else { 0 };
        bytes[2..4].copy_from_slice(&self.run.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.exptime_s.to_le_bytes());
        bytes
    }

    /// The record, if its verb is one that this version knows.
    pub fn from_bytes(bytes: &[u8; OP_BYTES]) -> Option<Op> {
        Some(Op {
            verb: Verb::from_byte(bytes[0])?,
            noreply: bytes[1] & FLAG_NOREPLY != 0,
            run: u16::from_le_bytes([bytes[2], bytes[3]]),
            key: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            length: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            exptime_s: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        })
    }
}

/// The header's fields, in the file's order from offset 16 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub file_bytes: u64,
    pub seed: u64,
    pub key_count: u64,
    pub prefill_count: u64,
    pub op_count: u64,
    pub run_count: u64,
    pub pool_bytes: u64,
    pub period_ns: u64,
    pub key_offsets_at: u64,
    pub key_bytes_at: u64,
    pub key_bytes: u64,
    pub lengths_at: u64,
    pub pool_at: u64,
    pub ops_at: u64,
    pub runs_at: u64,
    pub times_at: u64,
    pub exptime_s: u64,
    pub flags: u64,
    pub group: u64,
    pub counter_count: u64,
    pub thinks_at: u64,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        for (slot, field) in bytes[16..].chunks_exact_mut(8).zip(self.fields()) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Header {
        let mut fields = bytes[16..]
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        let mut next = || fields.next().expect("twenty-one fields");
        Header {
            file_bytes: next(),
            seed: next(),
            key_count: next(),
            prefill_count: next(),
            op_count: next(),
            run_count: next(),
            pool_bytes: next(),
            period_ns: next(),
            key_offsets_at: next(),
            key_bytes_at: next(),
            key_bytes: next(),
            lengths_at: next(),
            pool_at: next(),
            ops_at: next(),
            runs_at: next(),
            times_at: next(),
            exptime_s: next(),
            flags: next(),
            group: next(),
            counter_count: next(),
            thinks_at: next(),
        }
    }

    fn fields(self) -> [u64; 21] {
        [
            self.file_bytes,
            self.seed,
            self.key_count,
            self.prefill_count,
            self.op_count,
            self.run_count,
            self.pool_bytes,
            self.period_ns,
            self.key_offsets_at,
            self.key_bytes_at,
            self.key_bytes,
            self.lengths_at,
            self.pool_at,
            self.ops_at,
            self.runs_at,
            self.times_at,
            self.exptime_s,
            self.flags,
            self.group,
            self.counter_count,
            self.thinks_at,
        ]
    }
}

/// Where in the pool the value of a key at a length begins; `length` ≤ `pool_bytes`.
///
/// The products stay below 2⁵³, so the formula is exact in languages whose only number is a double.
#[inline]
pub fn value_offset(key: u32, length: u32, pool_bytes: u64) -> u64 {
    (u64::from(key) * 786_433 + u64::from(length) * 97) % (pool_bytes - u64::from(length) + 1)
}
