//! The guard of an admitted connection, which counts and lists it as long as it lives.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::state::peer::{EndReason, Peer};
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
        socket: BorrowedFd<'_>,
        address: String,
        listener: String,
    ) -> Option<ConnectionGuard> {
        if !state.try_admit() {
            return None;
        }
        // Only a server with an idle timeout needs to shut down connections of other threads.
        let idles_out = state.settings.idle_timeout_s > 0;
        let handle = idles_out.then(|| socket.try_clone_to_owned().ok()).flatten();
        let peer = Peer::new(socket.as_raw_fd(), address, listener, state.now_s(), handle);
        let peer = Arc::new(peer);
        let number = state.add_peer(&peer);
        Some(ConnectionGuard { state: Arc::clone(state), number, peer })
    }

    /// Count bytes that arrived.
    pub fn received(&self, bytes: usize, now_s: u32) {
        self.peer.received(now_s);
        self.state.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The socket's file descriptor.
    pub fn socket(&self) -> i32 {
        self.peer.socket
    }

    /// Note whether the rest of a request is outstanding.
    pub fn set_awaits_data(&self, awaits: bool) {
        self.peer.set_awaits_data(awaits);
    }

    /// Note that the client watches the log from now on.
    pub fn begins_to_watch(&self) {
        self.peer.begins_to_watch();
    }

    /// Note that the client ended the connection, unless another reason is known.
    pub fn client_ended(&self) {
        if self.peer.end_reason() == EndReason::Error {
            self.peer.ends_because(EndReason::Normal);
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.state.remove_peer(self.number);
        self.state.release();
    }
}
