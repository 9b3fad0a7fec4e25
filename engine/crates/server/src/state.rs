//! What all connections share: the store, the settings, the counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cachemark_storage::Store;

/// How connections are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// A thread for each connection.
    Blocking,
    /// Event loops, each with many connections.
    Events,
}

impl IoMode {
    pub fn name(self) -> &'static str {
        match self {
            IoMode::Blocking => "blocking",
            IoMode::Events => "events",
        }
    }
}

/// How the server is set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub io: IoMode,
    /// Event loops; of no meaning in blocking mode.
    pub threads: usize,
    pub memory_bytes: usize,
    /// The largest item, with what memcached's own header takes.
    pub item_bytes_max: u64,
    pub max_connections: u64,
}

pub struct State {
    pub settings: Settings,
    pub store: Store,
    pub version: &'static str,
    pub current_connections: AtomicU64,
    pub total_connections: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub flushes: AtomicU64,
    pub meta_commands: AtomicU64,
    began: Instant,
}

impl State {
    pub fn new(settings: Settings, version: &'static str) -> State {
        State {
            settings,
            store: Store::new(settings.memory_bytes),
            version,
            current_connections: AtomicU64::new(0),
            total_connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            meta_commands: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// A connection begins, unless there are too many.
    pub fn admit(&self) -> bool {
        let before = self.current_connections.fetch_add(1, Ordering::Relaxed);
        if before >= self.settings.max_connections {
            self.current_connections.fetch_sub(1, Ordering::Relaxed);
            self.rejected_connections.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.total_connections.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// A connection that was admitted has ended.
    pub fn leave(&self) {
        self.current_connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn uptime_s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    pub fn reset_counters(&self) {
        self.store.reset_counters();
        for counter in [
            &self.total_connections,
            &self.rejected_connections,
            &self.bytes_read,
            &self.bytes_written,
            &self.flushes,
            &self.meta_commands,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Seconds since the epoch; expiry has no finer grain.
pub fn now_s() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}
