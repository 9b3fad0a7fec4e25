//! A record of the tape, as an operation.

use crate::tape::{Kind, Verb};

/// One record, with everything that a call needs looked up.
pub struct Operation {
    pub verb: Verb,
    pub kind: Kind,
    /// The record's number.
    pub number: usize,
    pub keys: &'static [&'static str],
    /// Keys with their values, of an `mset`.
    pub pairs: &'static [(&'static str, &'static [u8])],
    pub indexes: &'static [u32],
    /// The value that is written, or that a read has to bring.
    pub value: &'static [u8],
    pub amount: u64,
    pub exptime_s: u32,
    pub key_bytes: u64,
    /// Of a write; of a read that of the lane's last write of the key before it.
    pub generation: u8,
}

impl Operation {
    /// Its only key.
    pub fn key(&self) -> &'static str {
        self.keys[0]
    }
}
