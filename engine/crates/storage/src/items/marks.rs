//! The marks of the meta protocol.

/// The meta protocol's notes on an item, in its slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Invalidated: a client has to store it again; until then it is served.
    pub stale: bool,
    /// A reply's `W` flag told one client to store it again.
    pub won: bool,
    /// Its key was sent in base64, and is returned in base64.
    pub binary_key: bool,
}
