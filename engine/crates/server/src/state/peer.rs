//! A connected client.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EndReason {
    /// The client broke the protocol, or the network failed.
    Error,
    /// The client closed the connection or sent `quit`.
    Normal,
    IdleTimeout,
    Shutdown,
}

impl EndReason {
    const ALL: [EndReason; 4] =
        [EndReason::Error, EndReason::Normal, EndReason::IdleTimeout, EndReason::Shutdown];

    /// Its name in log lines.
    pub fn name(self) -> &'static str {
        match self {
            EndReason::Error => "error",
            EndReason::Normal => "normal",
            EndReason::IdleTimeout => "idle_timeout",
            EndReason::Shutdown => "shutdown",
        }
    }
}

/// A connected client, for `stats conns`.
#[derive(Debug)]
pub struct Peer {
    /// The socket's file descriptor.
    pub socket: i32,
    pub address: String,
    pub listener: String,
    last_received_s: AtomicU32,
    /// A part of a request has arrived, and the rest has not.
    awaits_data: AtomicBool,
    /// The client watches the log, and need not send anything.
    watches: AtomicBool,
    end_reason: AtomicU8,
    /// The socket once more, to shut it down when it is idle for too long.
    handle: Option<OwnedFd>,
}

impl Peer {
    pub fn new(
        socket: i32,
        address: String,
        listener: String,
        now_s: u32,
        handle: Option<OwnedFd>,
    ) -> Peer {
        Peer {
            socket,
            address,
            listener,
            last_received_s: AtomicU32::new(now_s),
            awaits_data: AtomicBool::new(false),
            watches: AtomicBool::new(false),
            end_reason: AtomicU8::new(EndReason::Error as u8),
            handle,
        }
    }

    /// Bytes arrived from the client.
    pub fn received(&self, now_s: u32) {
        self.last_received_s.store(now_s, Ordering::Relaxed);
    }

    /// How long ago bytes arrived last.
    pub fn idle_s(&self, now_s: u32) -> u32 {
        now_s.saturating_sub(self.last_received_s.load(Ordering::Relaxed))
    }

    /// Note whether the rest of a request is outstanding.
    pub fn set_awaits_data(&self, awaits: bool) {
        if self.awaits_data.load(Ordering::Relaxed) != awaits {
            self.awaits_data.store(awaits, Ordering::Relaxed);
        }
    }

    pub fn awaits_data(&self) -> bool {
        self.awaits_data.load(Ordering::Relaxed)
    }

    /// Note that the client watches the log from now on.
    pub fn begins_to_watch(&self) {
        self.watches.store(true, Ordering::Relaxed);
    }

    pub fn watches(&self) -> bool {
        self.watches.load(Ordering::Relaxed)
    }

    /// Note why the connection is about to end.
    pub fn ends_because(&self, reason: EndReason) {
        self.end_reason.store(reason as u8, Ordering::Relaxed);
    }

    pub fn end_reason(&self) -> EndReason {
        EndReason::ALL[usize::from(self.end_reason.load(Ordering::Relaxed))]
    }

    /// Shut the connection down, if there is a handle for that. Its thread or its loop then ends it.
    pub fn shut_down(&self) {
        if let Some(socket) = &self.handle {
            // The client may have closed the connection already.
            let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
        }
    }
}
