//! Grace periods: when memory that readers could see may be written again.
//!
//! This is sleepable read-copy-update (P. McKenney, "Sleepable RCU", 2006). A reader increments a
//! counter of its thread when it enters, reads, and increments another one when it leaves; no reader waits
//! for anybody. A writer that wants to reuse memory first removes it from the table. Then it waits until
//! it has seen, twice, that no reader of any thread is inside. New readers use the other one of two sets
//! of counters meanwhile, so that a thread which reads all the time does not delay the writer for ever.
//! The counters of leaving readers are also the counts of hits and misses.
//!
//! An epoch ends when one set of counters was seen empty. Memory may be reused three epochs after it
//! was removed.
//!
//! A reader must be counted before it looks at the table. That takes a fence between the two, which the
//! writer executes for all threads (`asymmetric_fence.rs`). So readers use plain loads and stores, and the
//! processor can begin the next read while the present one waits for memory. It is correct in both cases:
//! a reader that was counted before the fence is seen by the writer, which checks the counters after the
//! fence. A reader that was not looks at the table after the fence, and does not find the memory there.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::reclamation::asymmetric_fence::AsymmetricFence;
use crate::reclamation::thread_index::{INDICES, ThreadIndex};
use crate::size_classes::CLASSES_MAX;

/// How often a writer checks the counters before it sleeps.
const SPINS: usize = 100;
/// How long it sleeps. A preempted reader ends in less time once it runs again. `yield` instead could
/// wait for whole time slices of readers that never sleep, three times for each segment.
const SLEEP: Duration = Duration::from_micros(20);

/// How many readers entered, and how many left with which outcome.
#[derive(Default)]
struct CounterSet {
    entered: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Left, and counted as neither.
    others: AtomicU64,
}

impl CounterSet {
    fn left(&self) -> u64 {
        [&self.hits, &self.misses, &self.others]
            .map(|count| count.load(Ordering::SeqCst))
            .iter()
            .sum()
    }
}

/// The counters of a thread: two cache lines, because the processor may fetch them as a pair.
#[derive(Default)]
#[repr(align(128))]
struct ThreadCounters {
    sets: [CounterSet; 2],
}

/// Hits of a thread by the class of the item's size.
#[repr(align(128))]
struct ClassHits([AtomicU64; CLASSES_MAX]);

/// The readers of a store, and the epoch.
pub struct GracePeriods {
    class_hits: OnceLock<Box<[ClassHits]>>,
    /// Hits by class at the last reset.
    class_hits_at_reset: [AtomicU64; CLASSES_MAX],
    threads: Box<[ThreadCounters; INDICES]>,
    epoch: AtomicU64,
    fence: AsymmetricFence,
    /// The last epoch in which the heavy fence was executed, plus one.
    fenced_until: AtomicU64,
    /// How often a writer slept.
    sleeps: AtomicU64,
    /// Hits and misses at the last reset.
    counts_at_reset: [AtomicU64; 2],
}

/// A reader that is inside. What it finds in the table is not overwritten until the guard is dropped.
pub struct ReadGuard<'a> {
    periods: &'a GracePeriods,
    set: &'a CounterSet,
    thread: ThreadIndex,
    outcome: Cell<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Hit,
    Miss,
    Other,
}

impl ReadGuard<'_> {
    #[inline]
    pub fn hit(&self) {
        self.outcome.set(Outcome::Hit);
    }

    /// The hit was of an item of this class.
    #[inline]
    pub fn hit_class(&self, class: usize) {
        if let Some(threads) = self.periods.class_hits.get() {
            self.thread.increment(&threads[self.thread.get()].0[class]);
        }
    }

    #[inline]
    pub fn miss(&self) {
        self.outcome.set(Outcome::Miss);
    }
}

impl Drop for ReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let count = match self.outcome.get() {
            Outcome::Hit => &self.set.hits,
            Outcome::Miss => &self.set.misses,
            Outcome::Other => &self.set.others,
        };
        self.thread.increment(count);
    }
}

impl GracePeriods {
    pub fn new() -> GracePeriods {
        GracePeriods {
            class_hits: OnceLock::new(),
            class_hits_at_reset: [const { AtomicU64::new(0) }; CLASSES_MAX],
            threads: Box::new(std::array::from_fn(|_| ThreadCounters::default())),
            epoch: AtomicU64::new(0),
            fence: AsymmetricFence::new(),
            fenced_until: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            counts_at_reset: Default::default(),
        }
    }

    /// Enter. Nothing that the table leads to is overwritten while the guard lives.
    #[inline]
    pub fn begin_read(&self) -> ReadGuard<'_> {
        let thread = ThreadIndex::current();
        let epoch = self.epoch.load(Ordering::Relaxed);
        let set = &self.threads[thread.get()].sets[epoch as usize & 1];
        thread.increment(&set.entered);
        self.fence.light();
        ReadGuard { periods: self, set, thread, outcome: Cell::new(Outcome::Other) }
    }

    /// Memory that was removed from the table before this call may be reused from this epoch on. Both
    /// sets must be seen empty after this call; a check that is under way now may have looked before.
    pub fn reuse_epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst) + 3
    }

    /// Whether this epoch has begun. Advances the epoch as far as the readers allow.
    pub fn has_passed(&self, epoch: u64) -> bool {
        loop {
            let now = self.epoch.load(Ordering::SeqCst);
            if now >= epoch {
                return true;
            }
            self.fence_epoch(now);
            if !self.is_empty((now as usize + 1) & 1) {
                return false;
            }
            // If another thread was faster, the epoch has advanced as well.
            let _ = self.epoch.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Wait a short time for an epoch. False if it has not begun: then call this again. Readers leave
    /// within a microsecond, unless the kernel preempted them.
    pub fn wait_briefly(&self, epoch: u64) -> bool {
        for _ in 0..SPINS {
            if self.has_passed(epoch) {
                return true;
            }
            std::hint::spin_loop();
        }
        self.sleeps.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(SLEEP);
        false
    }

    /// How often a writer slept until readers left.
    #[cfg(test)]
    pub fn sleeps(&self) -> u64 {
        self.sleeps.load(Ordering::Relaxed)
    }

    /// A fence between what was removed from the table before this epoch and the checks within it. One
    /// fence for each epoch is enough.
    fn fence_epoch(&self, epoch: u64) {
        if self.fenced_until.load(Ordering::SeqCst) <= epoch {
            self.fence.heavy();
            self.fenced_until.fetch_max(epoch + 1, Ordering::SeqCst);
        }
    }

    /// Whether no reader of this set is inside. The leaving readers are counted before the entering
    /// ones, so that none is missed.
    fn is_empty(&self, set: usize) -> bool {
        self.threads.iter().all(|thread| {
            let set = &thread.sets[set];
            set.left() == set.entered.load(Ordering::SeqCst)
        })
    }

    /// Count hits by class from now on.
    pub fn count_by_class(&self) {
        self.class_hits.get_or_init(|| {
            (0..INDICES).map(|_| ClassHits([const { AtomicU64::new(0) }; CLASSES_MAX])).collect()
        });
    }

    /// Hits of a class since the last reset.
    pub fn hits_of_class(&self, class: usize) -> u64 {
        self.total_hits_of(class)
            .saturating_sub(self.class_hits_at_reset[class].load(Ordering::Relaxed))
    }

    fn total_hits_of(&self, class: usize) -> u64 {
        let threads = self.class_hits.get().map_or(&[][..], |threads| threads);
        threads.iter().map(|thread| thread.0[class].load(Ordering::Relaxed)).sum()
    }

    /// Hits and misses since the last reset.
    pub fn read_counts(&self) -> (u64, u64) {
        let [hits, misses] = self.total_counts();
        let since = |all: u64, n: usize| {
            all.saturating_sub(self.counts_at_reset[n].load(Ordering::Relaxed))
        };
        (since(hits, 0), since(misses, 1))
    }

    /// Count hits and misses from 0 again.
    pub fn reset_counts(&self) {
        for (base, count) in self.counts_at_reset.iter().zip(self.total_counts()) {
            base.store(count, Ordering::Relaxed);
        }
        for (class, base) in self.class_hits_at_reset.iter().enumerate() {
            base.store(self.total_hits_of(class), Ordering::Relaxed);
        }
    }

    fn total_counts(&self) -> [u64; 2] {
        let sets = || self.threads.iter().flat_map(|thread| &thread.sets);
        let sum = |count: fn(&CounterSet) -> &AtomicU64| {
            sets().map(|set| count(set).load(Ordering::Relaxed)).sum()
        };
        [sum(|set| &set.hits), sum(|set| &set.misses)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_reused_while_a_reader_is_inside() {
        let periods = GracePeriods::new();
        assert!(periods.has_passed(periods.reuse_epoch()), "no reader is inside");
        let guard = periods.begin_read();
        let epoch = periods.reuse_epoch();
        assert!(!periods.has_passed(epoch));
        let later = periods.begin_read();
        later.hit();
        drop(guard);
        let epoch_of_later = periods.reuse_epoch();
        assert!(!periods.has_passed(epoch_of_later));
        drop(later);
        assert!(periods.has_passed(epoch_of_later) && periods.has_passed(epoch));
        assert_eq!(periods.read_counts(), (1, 0));
    }
}
