//! The operations of a tape, and their records.

use super::layout::{FLAG_NOREPLY, GENERATION_SHIFT, GENERATIONS, OP_BYTES};

/// The verb of an operation.
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
    /// Cache-aside: a get, and after a miss a set of the key.
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

    /// The verb of a record's first byte; `None` if it is unknown.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Verb> {
        Verb::BY_BYTE[byte as usize]
    }

    /// Each byte's verb. A search would cost more for the later verbs, and every record is read so.
    const BY_BYTE: [Option<Verb>; 256] = {
        let (mut verbs, mut n) = ([None; 256], 0);
        while n < Verb::ALL.len() {
            verbs[Verb::ALL[n] as usize] = Some(Verb::ALL[n]);
            n += 1;
        }
        verbs
    };

    pub fn name(self) -> &'static str {
        self.kind(false)
    }

    /// The name of this kind of operation in results.
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

    /// Whether the text protocol has a `noreply` form of this verb.
    pub fn may_be_noreply(self) -> bool {
        use Verb::{Cas, Fetch, Gat, Get, Gets, Mget, Version};
        !matches!(self, Get | Gets | Mget | Gat | Version | Cas | Fetch)
    }

    /// Whether the operation has several keys: a run of keys.
    pub fn has_run(self) -> bool {
        matches!(self, Verb::Mget | Verb::Mset)
    }

    /// Whether the operation has no key.
    pub fn is_keyless(self) -> bool {
        matches!(self, Verb::Version | Verb::Flush)
    }

    /// Whether it appends to a value. It appends nothing, so that values stay as they are.
    pub fn extends(self) -> bool {
        matches!(self, Verb::Append | Verb::Prepend)
    }

    /// Whether it may store a value.
    pub fn writes(self) -> bool {
        use Verb::{Add, Cas, Fetch, Mset, Replace, Set};
        matches!(self, Set | Add | Replace | Mset | Cas | Fetch)
    }

    /// Whether it reads values and stores none.
    pub fn reads(self) -> bool {
        matches!(self, Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat)
    }

    /// Whether it changes an item without storing a value of its own.
    pub fn changes(self) -> bool {
        use Verb::{Append, Decr, Delete, Flush, Incr, Prepend, Touch};
        matches!(self, Delete | Touch | Incr | Decr | Append | Prepend | Flush)
    }

    /// Whether it writes or reads a value whose generation is in the record.
    pub fn has_generation(self) -> bool {
        matches!(self, Verb::Set | Verb::Get | Verb::Gets | Verb::Gat | Verb::Mget)
    }

    /// Whether it works on counters, and only on counters.
    pub fn counts(self) -> bool {
        matches!(self, Verb::Incr | Verb::Decr)
    }
}

/// One record: an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    pub verb: Verb,
    pub noreply: bool,
    /// The number of keys: 1, the length of a run, or 0 for `version` and `flush`.
    pub run: u16,
    /// The index of the key. For a run: the index of its first entry in the run table.
    pub key: u32,
    /// The size of the value that a write of one key stores, in bytes. For `incr` and `decr`: the
    /// amount.
    pub length: u32,
    pub exptime_s: u32,
    /// Of a write: the generation of its value. Of a read: that of the lane's last write of the key (`mget`: of the
    /// first key) before it, 0 if there is none. At most 3.
    pub generation: u8,
}

impl Op {
    pub fn to_bytes(self) -> [u8; OP_BYTES] {
        let mut bytes = [0; OP_BYTES];
        bytes[0] = self.verb as u8;
        bytes[1] = (u8::from(self.noreply) * FLAG_NOREPLY) | (self.generation << GENERATION_SHIFT);
        bytes[2..4].copy_from_slice(&self.run.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.exptime_s.to_le_bytes());
        bytes
    }

    /// The record; `None` if its verb is unknown.
    pub fn from_bytes(bytes: &[u8; OP_BYTES]) -> Option<Op> {
        Some(Op {
            verb: Verb::from_byte(bytes[0])?,
            noreply: bytes[1] & FLAG_NOREPLY != 0,
            run: u16::from_le_bytes([bytes[2], bytes[3]]),
            key: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            length: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            exptime_s: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            generation: (bytes[1] >> GENERATION_SHIFT) % GENERATIONS,
        })
    }
}
