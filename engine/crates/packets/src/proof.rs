//! Whether a reply belongs to the request that it is taken for.
//!
//! In a connection that began before the capture, or of which packets are missing, replies to earlier requests may
//! still be under way: then each reply is taken for that to a later request. A reply with a key or a token shows this,
//! and one that fits may fit by chance: if every client reads one popular key. Several that fit, each with another key
//! than the one before, prove it. A client that always waited for its replies before is trusted.

/// How many replies must fit.
const MATCHES: u8 = 3;
/// How often a client must have waited for its replies.
const TURNS: u8 = 3;

#[derive(Debug, Default)]
pub(crate) struct Proof {
    missing: u8,
    /// The key or the token of the last reply that fitted.
    last: Box<[u8]>,
    turns: u8,
    /// The client asked before it had all replies.
    overlaps: bool,
}

impl Proof {
    /// Nothing was asked before.
    pub(crate) fn certain() -> Proof {
        Proof::default()
    }

    /// The proof that is needed after step was lost.
    pub(crate) fn of_next_try(self) -> Proof {
        let is_trusted = self.turns >= TURNS && !self.overlaps;
        let missing = if is_trusted { 0 } else { MATCHES };
        Proof { missing, last: Box::default(), ..self }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// A reply has the key or the token of its request.
    pub(crate) fn fits(&mut self, identity: &[u8]) {
        if !self.is_complete() && !identity.is_empty() && *self.last != *identity {
            self.missing -= 1;
            self.last = identity.into();
        }
    }

    /// The client begins to ask again: does it have all its replies?
    pub(crate) fn note_turn(&mut self, has_all: bool) {
        if self.is_complete() {
            self.overlaps |= !has_all;
            self.turns = self.turns.saturating_add(u8::from(has_all));
        }
    }
}
