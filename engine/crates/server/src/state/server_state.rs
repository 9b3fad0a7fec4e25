//! The state that all connections share: the store, the settings, the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::thread;
use std::time::Instant;

use cachemark_storage::{EvictionObserver, Store};

use crate::state::accounts::Accounts;
use crate::state::clock::Clock;
use crate::state::event_lines;
use crate::state::event_log::{EventLog, kinds};
use crate::state::peer::Peer;
use crate::state::prefixes::Prefixes;
use crate::state::settings::Settings;
use crate::state::tls::Tls;
use crate::state::traffic::TrafficLog;
use crate::state::tuning::Tuning;

/// A socket that listens, for `stats conns`.
#[derive(Clone, Debug)]
pub struct ListeningSocket {
    pub socket: i32,
    pub address: String,
}

/// How a client asked for the end of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    Now,
    Graceful,
}

type OnShutdown = Box<dyn Fn(Shutdown) + Send + Sync>;

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
    /// How many connections were closed because they were idle for too long.
    pub idle_kicks: AtomicU64,
    /// How often a connection with more requests than are carried out at once let others come first.
    pub yields: AtomicU64,
    /// The CPU time of polls of `--io busy` that found nothing.
    pub idle_polls_ns: AtomicU64,
    /// How often `lru_crawler crawl` removed expired items.
    pub crawls: AtomicU64,
    /// Where the server listens.
    pub listening: OnceLock<Vec<ListeningSocket>>,
    pub clock: Clock,
    pub log: Arc<EventLog>,
    pub prefixes: Prefixes,
    tuning: Mutex<Tuning>,
    requires_login: bool,
    accounts: RwLock<Option<Accounts>>,
    on_shutdown: Option<OnShutdown>,
    tls: Option<Tls>,
    traffic: Option<Arc<TrafficLog>>,
    peers: Mutex<BTreeMap<u64, Arc<Peer>>>,
    next_peer: AtomicU64,
    started: Instant,
    /// The state itself, for threads that it starts.
    itself: OnceLock<Weak<State>>,
}

impl State {
    /// # Panics
    ///
    /// If the system cannot reserve the address range of the store.
    pub fn new(settings: Settings, version: &'static str) -> State {
        let store = Store::adjustable(settings.memory_bytes, None).expect("a range of addresses");
        State::with_store(store, settings, version)
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
            idle_kicks: AtomicU64::new(0),
            yields: AtomicU64::new(0),
            idle_polls_ns: AtomicU64::new(0),
            crawls: AtomicU64::new(0),
            listening: OnceLock::new(),
            clock: Clock::default(),
            log: Arc::default(),
            prefixes: Prefixes::default(),
            tuning: Mutex::default(),
            requires_login: false,
            accounts: RwLock::new(None),
            on_shutdown: None,
            tls: None,
            traffic: None,
            peers: Mutex::default(),
            next_peer: AtomicU64::new(0),
            started: Instant::now(),
            itself: OnceLock::new(),
        }
    }

    /// The same, for these users only.
    #[must_use]
    pub fn with_accounts(self, accounts: Accounts) -> State {
        State { accounts: RwLock::new(Some(accounts)), requires_login: true, ..self }
    }

    /// The same, with these settings for `stats settings`.
    #[must_use]
    pub fn with_tuning(self, tuning: Tuning) -> State {
        State { tuning: Mutex::new(tuning), ..self }
    }

    /// The same, with a function that ends the server, for the command `shutdown`.
    #[must_use]
    pub fn with_shutdown(self, end: impl Fn(Shutdown) + Send + Sync + 'static) -> State {
        State { on_shutdown: Some(Box::new(end)), ..self }
    }

    /// Replace the users. Connections that have logged in stay so.
    pub fn replace_accounts(&self, accounts: Accounts) {
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = Some(accounts);
    }

    /// End the server, as a client asked for.
    pub fn shut_down(&self, how: Shutdown) {
        if let Some(end) = &self.on_shutdown {
            end(how);
        }
    }

    /// Change the memory limit. False if this limit is not possible. Memory beyond a lower one is freed in a thread,
    /// because that may take seconds.
    pub fn set_memory_limit(&self, limit_bytes: u64) -> bool {
        if !self.store.set_limit_bytes(limit_bytes, self.now_s()) {
            return false;
        }
        let free = |state: &State| while state.store.approach_limit(state.now_s()) {};
        match self.itself() {
            Some(state) if self.store.approach_limit(self.now_s()) => {
                let thread = thread::Builder::new().name("limit".to_owned());
                if thread.spawn(move || free(&state)).is_err() {
                    free(self);
                }
            }
            Some(_) => {}
            None => free(self),
        }
        true
    }

    /// Remember its own `Arc`, so that its methods can start threads.
    pub(crate) fn is_shared(self: &Arc<State>) {
        // A state belongs to one server.
        let _ = self.itself.set(Arc::downgrade(self));
    }

    /// The state itself, once a server has it.
    pub(crate) fn itself(&self) -> Option<Arc<State>> {
        self.itself.get().and_then(Weak::upgrade)
    }

    pub fn tuning(&self) -> MutexGuard<'_, Tuning> {
        self.tuning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Report evictions to the log from now on.
    pub fn report_evictions(&self) {
        let log = Arc::clone(&self.log);
        let observer: EvictionObserver = Arc::new(move |key, item, now_s| {
            if log.wants(kinds::EVICTIONS) {
                log.write(kinds::EVICTIONS, &event_lines::eviction(key, item, now_s));
            }
        });
        self.store.observe_evictions(&observer);
    }

    pub fn now_s(&self) -> u32 {
        self.clock.now_s()
    }

    /// The same, with TLS for TCP connections.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> State {
        State { tls: Some(tls), ..self }
    }

    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// The same, with a log of what each blocking connection receives and is sent.
    #[must_use]
    pub fn with_traffic(self, log: Arc<TrafficLog>) -> State {
        State { traffic: Some(log), ..self }
    }

    pub fn traffic(&self) -> Option<&Arc<TrafficLog>> {
        self.traffic.as_ref()
    }

    /// Whether a client may list items. Not by datagrams: with a request of a few bytes and a forged address, an
    /// attacker could send the whole list to another machine.
    pub fn may_dump(&self, socket: Option<i32>) -> bool {
        self.settings.commands.dump && socket.is_some()
    }

    /// Whether clients have to log in.
    pub fn requires_login(&self) -> bool {
        self.requires_login
    }

    /// Check and count a login.
    pub fn authenticate(&self, is_known: impl FnOnce(&Accounts) -> bool) -> bool {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        let allowed = accounts.as_ref().is_none_or(is_known);
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
        if self.log.wants(kinds::CONNECTIONS) {
            self.log.write(kinds::CONNECTIONS, &event_lines::connection_began(peer));
        }
        number
    }

    pub(crate) fn remove_peer(&self, number: u64) {
        let peer = self.lock_peers().remove(&number);
        if let Some(peer) = peer.filter(|_| self.log.wants(kinds::CONNECTIONS)) {
            self.log.write(kinds::CONNECTIONS, &event_lines::connection_ended(&peer));
        }
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
        self.prefixes.clear();
        for counter in [
            &self.total_connections,
            &self.rejected_connections,
            &self.failed_connections,
            &self.idle_kicks,
            &self.yields,
            &self.idle_polls_ns,
            &self.crawls,
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
