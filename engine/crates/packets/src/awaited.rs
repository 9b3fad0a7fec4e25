//! Requests that have no reply yet.

use crate::book::Place;

/// The memory of an allocation besides its content.
const BOX_BYTES: usize = 16;

/// A request, and the operations that its reply answers.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// A get of the text protocol: its keys, and how many of them are behind us.
    Values {
        keys: Vec<(Box<[u8]>, Place)>,
        passed: usize,
    },
    /// One line.
    Line(Option<Place>),
    /// Lines up to an `END` or the like.
    Lines,
    Meta(Meta),
    Binary(Binary),
}

/// A meta command.
#[derive(Debug)]
pub(crate) struct Meta {
    /// `None`: it is not about an operation, such as `mn`.
    pub place: Option<Place>,
    pub is_read: bool,
    pub quiet: bool,
    /// The marks of a reply to this command: the opaque token, the key; empty if it was not asked for.
    pub opaque: Box<[u8]>,
    pub key: Box<[u8]>,
}

/// A request of the binary protocol.
#[derive(Debug)]
pub(crate) struct Binary {
    pub place: Option<Place>,
    pub is_read: bool,
    pub quiet: bool,
    pub opcode: u8,
    pub opaque: u32,
    /// Empty if the reply has no key.
    pub key: Box<[u8]>,
}

impl Awaited {
    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let behind = match self {
            Awaited::Values { keys, .. } => keys
                .iter()
                .map(|(key, _)| key.len() + BOX_BYTES + size_of::<(Box<[u8]>, Place)>())
                .sum(),
            Awaited::Line(_) | Awaited::Lines => 0,
            Awaited::Meta(meta) => meta.opaque.len() + meta.key.len() + 2 * BOX_BYTES,
            Awaited::Binary(binary) => binary.key.len() + BOX_BYTES,
        };
        behind + size_of::<Awaited>()
    }
}
