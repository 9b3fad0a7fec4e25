//! What every command is carried out with.

use crate::state::server_state::State;
use crate::state::settings::ITEM_HEADER_BYTES;

/// The server's state, the client's socket, the time, and where the reply goes.
pub struct RequestContext<'a> {
    pub state: &'a State,
    /// The client's socket; `None` for datagrams.
    pub socket: Option<i32>,
    pub now_s: u32,
    /// The kinds of events that somebody watches, as of the last read. Commands look here, and not at what all
    /// threads share.
    pub watched: u32,
    pub out: &'a mut Vec<u8>,
}

impl RequestContext<'_> {
    /// Whether somebody wants one of these kinds of events.
    #[inline]
    pub fn wants(&self, kinds: u32) -> bool {
        self.watched & kinds != 0
    }

    /// Whether an item with so many bytes of key and value may be stored.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes + ITEM_HEADER_BYTES <= self.state.settings.item_bytes_max
    }

    /// Remove the present item of a set that failed: its value is outdated and must not be served.
    pub fn drop_stale(&self, key: &[u8]) {
        self.state.store.discard(key, self.now_s);
    }
}
