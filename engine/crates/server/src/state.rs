//! What all connections share: the store, the settings, the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cachemark_storage::Store;

use crate::accounts::Accounts;
use crate::guest::Peer;
use crate::tls::Tls;

/// How connections are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMode {
    /// A thread for each connection.
    Blocking,
    /// Event loops, each with many connections.
    Events,
    /// The same on io_uring, where the kernel has it: see `IoMode::refusal`.
    Uring,
    /// Event loops that go on asking for a while before they sleep.
    Busy,
}

impl IoMode {
    const ALL: [IoMode; 4] = [IoMode::Blocking, IoMode::Events, IoMode::Uring, IoMode::Busy];

    /// Those that this machine can serve.
    pub fn here() -> impl Iterator<Item = IoMode> {
        IoMode::ALL.into_iter().filter(|io| io.refusal().is_none())
    }

    /// Why this machine cannot serve so, if it cannot.
    pub fn refusal(self) -> Option<String> {
        if self == IoMode::Uring { cachemark_uring::refusal() } else { None }
    }

    pub fn name(self) -> &'static str {
        match self {
            IoMode::Blocking => "blocking",
            IoMode::Events => "events",
            IoMode::Uring => "uring",
            IoMode::Busy => "busy",
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
    /// Times that the system had none to give.
    pub lacked_connections: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub flushes: AtomicU64,
    /// `me`: memcached counts no other here.
    pub meta_commands: AtomicU64,
    pub logins: AtomicU64,
    pub failed_logins: AtomicU64,
    pub too_large: AtomicU64,
    pub no_memory: AtomicU64,
    /// Where it listens.
    pub addresses: OnceLock<Vec<String>>,
    accounts: Option<Accounts>,
    tls: Option<Tls>,
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    next_peer: AtomicU64,
    began: Instant,
}

impl State {
    pub fn new(settings: Settings, version: &'static str) -> State {
        State::over(Store::new(settings.memory_bytes), settings, version)
    }

    /// The same over a store that was made already.
    pub fn over(store: Store, settings: Settings, version: &'static str) -> State {
        State {
            settings,
            store,
            version,
            current_connections: AtomicU64::new(0),
            total_connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            lacked_connections: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
            meta_commands: AtomicU64::new(0),
            logins: AtomicU64::new(0),
            failed_logins: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            no_memory: AtomicU64::new(0),
            addresses: OnceLock::new(),
            accounts: None,
            tls: None,
            peers: Mutex::default(),
            next_peer: AtomicU64::new(0),
            began: Instant::now(),
        }
    }

    /// The same, for nobody but these users.
    #[must_use]
    pub fn only_for(self, accounts: Accounts) -> State {
        State { accounts: Some(accounts), ..self }
    }

    /// The same, with TLS on its TCP connections.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> State {
        State { tls: Some(tls), ..self }
    }

    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Whether a client has to tell who it is.
    pub fn asks_who(&self) -> bool {
        self.accounts.is_some()
    }

    /// A client tells who it is: whether that is one of the users.
    pub fn logs_in(&self, known: impl FnOnce(&Accounts) -> bool) -> bool {
        let allowed = self.accounts.as_ref().is_none_or(known);
        self.logins.fetch_add(1, Ordering::Relaxed);
        self.failed_logins.fetch_add(u64::from(!allowed), Ordering::Relaxed);
        allowed
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

    /// List a connection; its number.
    pub(crate) fn enlist(&self, peer: &Arc<Peer>) -> u64 {
        let number = self.next_peer.fetch_add(1, Ordering::Relaxed);
        self.all_peers().insert(number, Arc::clone(peer));
        number
    }

    pub(crate) fn delist(&self, number: u64) {
        self.all_peers().remove(&number);
    }

    /// Those who are connected, in the order they came.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        self.all_peers().values().cloned().collect()
    }

    fn all_peers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn uptime_s(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    pub fn reset_counters(&self) {
        self.store.reset_counters();
        for counter in [
            &self.total_connections,
            &self.rejected_connections,
            &self.lacked_connections,
            &self.bytes_read,
            &self.bytes_written,
            &self.flushes,
            &self.meta_commands,
            &self.logins,
            &self.failed_logins,
            &self.too_large,
            &self.no_memory,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Seconds since the epoch; expiry has no finer grain.
pub fn now_s() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}
