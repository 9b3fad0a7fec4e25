//! A connection as the whole server knows it: counted, listed, and gone from the list with its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::state::{State, now_s};

/// Who is connected, for `stats conns`.
#[derive(Debug)]
pub struct Peer {
    /// The socket's number.
    pub socket: i32,
    pub address: String,
    pub listener: String,
    heard_s: AtomicU32,
}

impl Peer {
    pub fn silent_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.heard_s.load(Ordering::Relaxed))
    }
}

/// A connection that was let in; dropping it is its end.
pub struct Guest {
    state: Arc<State>,
    number: u64,
    peer: Arc<Peer>,
}

impl Guest {
    /// Let a connection in, unless there are too many.
    pub fn admit(
        state: &Arc<State>,
        socket: i32,
        address: String,
        listener: String,
    ) -> Option<Guest> {
        if !state.admit() {
            return None;
        }
        let heard_s = AtomicU32::new(now_s());
        let peer = Arc::new(Peer { socket, address, listener, heard_s });
        let number = state.enlist(&peer);
        Some(Guest { state: Arc::clone(state), number, peer })
    }

    /// Bytes came from it.
    pub fn heard(&self, bytes: usize, now_s: u32) {
        self.peer.heard_s.store(now_s, Ordering::Relaxed);
        self.state.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.state.delist(self.number);
        self.state.leave();
    }
}
