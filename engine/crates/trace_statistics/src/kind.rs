//! The kinds of operation.

/// The kind of an operation, as far as these statistics tell operations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Delete,
    Other,
}

impl Kind {
    pub(crate) fn of(operation: &str) -> Kind {
        match operation {
            "get" | "gets" | "gat" | "gats" | "mget" | "fetch" => Kind::Read,
            "set" | "add" | "replace" | "cas" => Kind::Write,
            "delete" => Kind::Delete,
            _ => Kind::Other,
        }
    }
}
