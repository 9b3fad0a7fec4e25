//! The guard of an admitted connection, which counts and lists it as long as it lives.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::state::clock::now_s;
use crate::state::peer::Peer;
use crate::state::server_state::State;

/// An admitted connection. Dropping the guard ends it.
pub struct ConnectionGuard {
    state: Arc<State>,
    number: u64,
    peer: Arc<Peer>,
}

impl ConnectionGuard {
    /// Admit a connection, unless there are too many.
    pub fn admit(
        state: &Arc<State>,
        socket: i32,
        address: String,
        listener: String,
    ) -> Option<ConnectionGuard> {
        if !state.try_admit() {
            return None;
        }
        let peer = Arc::new(Peer::new(socket, address, listener, now_s()));
        let number = state.add_peer(&peer);
        Some(ConnectionGuard { state: Arc::clone(state), number, peer })
    }

    /// Count bytes that arrived.
    pub fn received(&self, bytes: usize, now_s: u32) {
        self.peer.received(now_s);
        self.state.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.state.remove_peer(self.number);
        self.state.release();
    }
}
