//! What all connections share: the store, the settings, the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use cachemark_storage::Store;

use crate::state::accounts::Accounts;
use crate::state::peer::Peer;
use crate::state::settings::Settings;
use crate::state::tls::Tls;

pub struct State {
    pub settings: Settings,
    pub store: Store,
    pub version: &'static str,
    pub current_connections: AtomicU64,
    pub total_connections: AtomicU64,
    pub rejected_connections: AtomicU64,
    /// How often the system could not provide a connection.
    pub failed_connections: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    pub flushes: AtomicU64,
    /// Only `me` counts here, as in memcached.
    pub meta_commands: AtomicU64,
    pub logins: AtomicU64,
    pub failed_logins: AtomicU64,
    pub too_large: AtomicU64,
    pub no_memory: AtomicU64,
    /// Where the server listens.
    pub addresses: OnceLock<Vec<String>>,
    accounts: Option<Accounts>,
    tls: Option<Tls>,
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    next_peer: AtomicU64,
    started: Instant,
}

impl State {
    pub fn new(settings: Settings, version: &'static str) -> State {
        State::with_store(Store::new(settings.memory_bytes), settings, version)
    }

    /// A server over this store.
    pub fn with_store(store: Store, settings: Settings, version: &'static str) -> State {
        State {
            settings,
            store,
            version,
            current_connections: AtomicU64::new(0),
            total_connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            failed_connections: AtomicU64::new(0),
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
            started: Instant::now(),
        }
    }

    /// The same, for these users only.
    #[must_use]
    pub fn with_accounts(self, accounts: Accounts) -> State {
        State { accounts: Some(accounts), ..self }
    }

    /// The same, with TLS for TCP connections.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> State {
        State { tls: Some(tls), ..self }
    }

    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// Whether clients have to log in.
    pub fn requires_login(&self) -> bool {
        self.accounts.is_some()
    }

    /// Check and count a login.
    pub fn authenticate(&self, is_known: impl FnOnce(&Accounts) -> bool) -> bool {
        let allowed = self.accounts.as_ref().is_none_or(is_known);
        self.logins.fetch_add(1, Ordering::Relaxed);
        self.failed_logins.fetch_add(u64::from(!allowed), Ordering::Relaxed);
        allowed
    }

    /// Count a new connection, unless there are too many.
    pub fn try_admit(&self) -> bool {
        let before = self.current_connections.fetch_add(1, Ordering::Relaxed);
        if before >= self.settings.max_connections {
            self.current_connections.fetch_sub(1, Ordering::Relaxed);
            self.rejected_connections.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.total_connections.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// An admitted connection has ended.
    pub fn release(&self) {
        self.current_connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Add a client to the list of `stats conns` and return its number there.
    pub(crate) fn add_peer(&self, peer: &Arc<Peer>) -> u64 {
        let number = self.next_peer.fetch_add(1, Ordering::Relaxed);
        self.lock_peers().insert(number, Arc::clone(peer));
        number
    }

    pub(crate) fn remove_peer(&self, number: u64) {
        self.lock_peers().remove(&number);
    }

    /// The connected clients, in the order of their connections.
    pub fn peers(&self) -> Vec<Arc<Peer>> {
        self.lock_peers().values().cloned().collect()
    }

    fn lock_peers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn uptime_s(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    pub fn reset_counters(&self) {
        self.store.reset_counters();
        for counter in [
            &self.total_connections,
            &self.rejected_connections,
            &self.failed_connections,
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
