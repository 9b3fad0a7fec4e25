//! The log that `watch` shows: which clients watch, and the lines that wait to be sent to them.
//!
//! Each watcher has a queue of its own, with a limit. Lines that find no room are counted, and a line in their place
//! says how many were skipped.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

/// The kinds of logged events. A watcher chooses some of them.
pub mod kinds {
    pub const FETCHERS: u32 = 1;
    pub const MUTATIONS: u32 = 1 << 1;
    pub const EVICTIONS: u32 = 1 << 2;
    pub const CONNECTIONS: u32 = 1 << 3;
    pub const DELETIONS: u32 = 1 << 4;
    /// Not of the log: `stats detail` counts the uses of keys.
    pub const DETAIL: u32 = 1 << 5;

    /// The kind that a word of `watch` names. 0 for the kinds that never occur here; `None` for other words.
    pub fn named(word: &[u8]) -> Option<u32> {
        const NAMES: [(&str, u32); 10] = [
            ("rawcmds", 0),
            ("evictions", EVICTIONS),
            ("fetchers", FETCHERS),
            ("mutations", MUTATIONS),
            ("sysevents", 0),
            ("connevents", CONNECTIONS),
            ("proxyreqs", 0),
            ("proxyevents", 0),
            ("proxyuser", 0),
            ("deletions", DELETIONS),
        ];
        NAMES.iter().find(|(name, _)| name.as_bytes().starts_with(word)).map(|(_, kind)| *kind)
    }
}

/// memcached's own limit.
const WATCHERS_MAX: usize = 20;

/// The lines that wait for one watcher.
#[derive(Debug)]
pub struct Queue {
    kinds: u32,
    bytes_max: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    skipped: u64,
}

impl Waiting {
    /// Append a line that says how many lines were skipped, if any were.
    fn append_skipped(&mut self) {
        if self.skipped > 0 {
            let note = format!("skipped={}\n", self.skipped);
            self.bytes.extend_from_slice(note.as_bytes());
            self.skipped = 0;
        }
    }
}

impl Queue {
    /// Take out all that waits.
    pub fn take(&self) -> Vec<u8> {
        let mut waiting = self.lock();
        waiting.append_skipped();
        std::mem::take(&mut waiting.bytes)
    }

    /// Append a line, unless there is no room for it.
    fn push(&self, line: &[u8]) -> Pushed {
        let mut waiting = self.lock();
        if waiting.bytes.len() + line.len() > self.bytes_max {
            waiting.skipped += 1;
            return Pushed::Skipped;
        }
        let first = waiting.bytes.is_empty();
        waiting.append_skipped();
        waiting.bytes.extend_from_slice(line);
        if first { Pushed::First } else { Pushed::Behind }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Pushed {
    First,
    Behind,
    Skipped,
}

#[derive(Debug, Default)]
pub struct EventLog {
    /// The kinds of events that clients watch.
    wanted: AtomicU32,
    queues: Mutex<Vec<Arc<Queue>>>,
    next_id: AtomicU64,
    pub written: AtomicU64,
    pub skipped: AtomicU64,
    pub sent: AtomicU64,
    /// Wakes the thread that writes to the watchers.
    wake: OnceLock<OwnedFd>,
}

impl EventLog {
    /// The kinds of events that clients watch.
    #[inline]
    pub fn wanted(&self) -> u32 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Whether a client watches one of these kinds.
    #[inline]
    pub fn wants(&self, kinds: u32) -> bool {
        self.wanted() & kinds != 0
    }

    /// Switch `stats detail` on or off.
    pub fn set_detail(&self, on: bool) {
        let queues = self.lock();
        let detail = if on { kinds::DETAIL } else { 0 };
        self.wanted.store(kinds_of(&queues) | detail, Ordering::Relaxed);
    }

    /// A queue for a new watcher; `None` if there are too many.
    pub fn add(&self, kinds: u32, bytes_max: usize) -> Option<Arc<Queue>> {
        let mut queues = self.lock_living();
        if queues.len() >= WATCHERS_MAX {
            return None;
        }
        let queue = Arc::new(Queue { kinds, bytes_max, waiting: Mutex::default() });
        queues.push(Arc::clone(&queue));
        self.wanted.fetch_or(kinds, Ordering::Relaxed);
        Some(queue)
    }

    /// A watcher is gone.
    pub fn remove(&self, queue: &Arc<Queue>) {
        let mut queues = self.lock();
        queues.retain(|other| !Arc::ptr_eq(other, queue));
        self.narrow_wanted(&queues);
    }

    /// Want no more than these queues, and the counts of `stats detail`.
    fn narrow_wanted(&self, queues: &[Arc<Queue>]) {
        let detail = self.wanted() & kinds::DETAIL;
        self.wanted.store(kinds_of(queues) | detail, Ordering::Relaxed);
    }

    pub fn watchers(&self) -> u64 {
        self.lock_living().len() as u64
    }

    /// Write a line of one kind to all that want it.
    #[cold]
    pub fn write(&self, kind: u32, text: &str) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, micros) = (since.as_secs(), since.subsec_micros());
        let queues = self.lock_living();
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("ts={seconds}.{micros:06} gid={id} {text}\n");
        self.written.fetch_add(1, Ordering::Relaxed);
        for queue in queues.iter().filter(|queue| queue.kinds & kind != 0) {
            match queue.push(line.as_bytes()) {
                Pushed::First => self.wake_writer(),
                Pushed::Behind => {}
                Pushed::Skipped => {
                    self.skipped.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// The eventfd that says that lines wait.
    pub fn wake(&self) -> std::io::Result<&OwnedFd> {
        if self.wake.get().is_none() {
            // Another thread may have been quicker; then this one is dropped.
            let _ = self.wake.set(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        }
        Ok(self.wake.get().expect("just set"))
    }

    pub fn wake_writer(&self) {
        if let Some(wake) = self.wake.get() {
            // It fails only if the eventfd's counter is full; then the thread is woken anyway.
            let _ = rustix::io::write(wake, &1_u64.to_ne_bytes());
        }
    }

    /// The queues with a reader. A connection may fail before it is handed over to the watchers; then only this
    /// list has its queue.
    fn lock_living(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        let mut queues = self.lock();
        let before = queues.len();
        queues.retain(|queue| Arc::strong_count(queue) > 1);
        if queues.len() < before {
            self.narrow_wanted(&queues);
        }
        queues
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn kinds_of(queues: &[Arc<Queue>]) -> u32 {
    queues.iter().fold(0, |kinds, queue| kinds | queue.kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watcher_gets_the_kinds_that_it_wants() {
        let log = EventLog::default();
        assert!(!log.wants(u32::MAX));
        let queue = log.add(kinds::FETCHERS | kinds::EVICTIONS, 1 << 10).expect("a queue");
        log.write(kinds::FETCHERS, "type=a");
        log.write(kinds::MUTATIONS, "type=b");
        log.write(kinds::EVICTIONS, "type=c");
        let lines = String::from_utf8(queue.take()).expect("text");
        let shown: Vec<&str> = lines.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!(shown, ["type=a", "type=c"]);
        assert!(log.wants(kinds::EVICTIONS) && !log.wants(kinds::MUTATIONS));
        log.remove(&queue);
        assert!(!log.wants(u32::MAX) && log.watchers() == 0);
    }

    #[test]
    fn lines_without_room_are_counted() {
        let log = EventLog::default();
        let queue = log.add(kinds::FETCHERS, 100).expect("a queue");
        let long = "x".repeat(80);
        (0..3).for_each(|_| log.write(kinds::FETCHERS, &long));
        log.write(kinds::FETCHERS, &long);
        assert_eq!(log.skipped.load(Ordering::Relaxed), 4, "with its head each is too long");
        log.write(kinds::FETCHERS, "short");
        assert!(queue.take().starts_with(b"skipped=4\nts="));
        log.write(kinds::FETCHERS, "short");
        log.write(kinds::FETCHERS, &long);
        assert!(queue.take().ends_with(b" short\nskipped=1\n"));
    }

    #[test]
    fn a_queue_that_nobody_reads_is_removed() {
        let log = EventLog::default();
        log.set_detail(true);
        drop(log.add(kinds::FETCHERS, 100));
        log.write(kinds::FETCHERS, "short");
        assert_eq!((log.watchers(), log.wanted()), (0, kinds::DETAIL));
        for _ in 0..2 * WATCHERS_MAX {
            assert!(log.add(kinds::FETCHERS, 100).is_some());
        }
    }

    #[test]
    fn words_may_be_shortened() {
        assert_eq!(kinds::named(b"fetchers"), Some(kinds::FETCHERS));
        assert_eq!(kinds::named(b"mut"), Some(kinds::MUTATIONS));
        assert_eq!(kinds::named(b"fetchersx"), None);
    }
}
