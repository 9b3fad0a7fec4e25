//! What every command is carried out with.

use crate::state::server_state::State;

/// What memcached's own header adds to key and value when it checks an item's size.
pub const ITEM_HEADER_BYTES: u64 = 59;

/// The server's state, the time, and where the reply goes.
pub struct RequestContext<'a> {
    pub state: &'a State,
    pub now_s: u32,
    pub out: &'a mut Vec<u8>,
}

impl RequestContext<'_> {
    /// Whether an item with so many bytes of key and value may be stored.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes + ITEM_HEADER_BYTES <= self.state.settings.item_bytes_max
    }

    /// Remove the present item of a set that failed: its value is outdated and must not be served.
    pub fn drop_stale(&self, key: &[u8]) {
        self.state.store.discard(key, self.now_s);
    }
}
