//! The head of a reply of the binary protocol.

use crate::awaited::Binary;

pub(crate) const HEADER_BYTES: usize = 24;
const MAGIC: u8 = 0x81;
const NOT_FOUND: u16 = 1;

/// The head of a binary reply.
pub(crate) struct Head {
    pub opcode: u8,
    key_bytes: usize,
    pub extras_bytes: usize,
    status: u16,
    body_bytes: usize,
    pub opaque: u32,
}

impl Head {
    /// The head that these bytes are; `None` if they are no reply of the binary protocol.
    pub(crate) fn of(bytes: &[u8; HEADER_BYTES]) -> Option<Head> {
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let long = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|next| bytes[at + next]));
        let head = Head {
            opcode: bytes[1],
            key_bytes: short(2).into(),
            extras_bytes: bytes[4].into(),
            status: short(6),
            body_bytes: long(8) as usize,
            opaque: long(12),
        };
        let fits = bytes[0] == MAGIC && head.before_value() <= head.body_bytes;
        fits.then_some(head)
    }

    /// The bytes of extras and key.
    pub(crate) fn before_value(&self) -> usize {
        self.extras_bytes + self.key_bytes
    }

    pub(crate) fn value_bytes(&self) -> u64 {
        (self.body_bytes - self.before_value()) as u64
    }

    /// Whether it can be the reply to a request.
    pub(crate) fn answers(&self, asked: &Binary, key: &[u8]) -> bool {
        let same_key = key.is_empty() || asked.key.is_empty() || *asked.key == *key;
        self.opcode == asked.opcode && self.opaque == asked.opaque && same_key
    }

    /// Whether the request succeeded; `None` if a read had an error, which is no miss.
    pub(crate) fn outcome(&self, asked: &Binary) -> Option<bool> {
        match self.status {
            0 => Some(true),
            NOT_FOUND => Some(false),
            _ => (!asked.is_read).then_some(false),
        }
    }

    /// The size of the value that a read found.
    pub(crate) fn length(&self, asked: &Binary) -> Option<u32> {
        let has_value = self.status == 0 && asked.is_read;
        has_value.then(|| u32::try_from(self.value_bytes()).ok()).flatten()
    }
}
