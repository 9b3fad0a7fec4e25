//! A connected client.

use std::sync::atomic::{AtomicU32, Ordering};

/// A connected client, for `stats conns`.
#[derive(Debug)]
pub struct Peer {
    /// The socket's file descriptor.
    pub socket: i32,
    pub address: String,
    pub listener: String,
    last_received_s: AtomicU32,
}

impl Peer {
    pub fn new(socket: i32, address: String, listener: String, now_s: u32) -> Peer {
        Peer { socket, address, listener, last_received_s: AtomicU32::new(now_s) }
    }

    /// Bytes arrived from the client.
    pub fn received(&self, now_s: u32) {
        self.last_received_s.store(now_s, Ordering::Relaxed);
    }

    /// How long ago bytes arrived last.
    pub fn idle_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.last_received_s.load(Ordering::Relaxed))
    }
}
