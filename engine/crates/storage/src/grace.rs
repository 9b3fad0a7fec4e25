//! Grace: when memory that was taken from readers' sight may be written again.
//!
//! A reader counts itself in, looks, and counts itself out, on a line of counters that no other
//! thread writes to; nobody waits for anybody. Whoever wants to use memory again has taken it out of
//! the table first; once every line has been seen with nobody in, twice (new readers count on the
//! other of two sets, so that a line that is never empty cannot hold it up), no reader can look
//! there. This is sleepable read-copy-update (P. McKenney, "Sleepable RCU", 2006) with the counts of
//! hits and misses as the counts out.
//!
//! That a reader is counted in before it looks takes a full fence between the two, or one that the
//! other side makes for all threads: `barrier.rs`. With it readers pay plain loads and stores, and
//! the next read begins while this one still waits for memory. It holds by cases: a reader that was
//! counted in before the barrier is seen by the look at its line after it; one that was not looks at
//! the table after the barrier, and so after the memory was taken out of it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::barrier::Barrier;
use crate::line::{LINES, Line as Place};

/// Looks at the readers before the CPU is given to others.
const SPINS: usize = 100;
/// For how long it is: a reader that was cut off in the middle ends in less. To yield instead would
/// be to wait for whole slices of readers that never sleep, three times for each segment.
const NAP: Duration = Duration::from_micros(20);

#[derive(Default)]
struct Side {
    entered: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    /// Left without counting as either.
    others: AtomicU64,
}

impl Side {
    fn left(&self) -> u64 {
        [&self.hits, &self.misses, &self.others]
            .map(|count| count.load(Ordering::SeqCst))
            .iter()
            .sum()
    }
}

/// Two cache lines that the processor may fetch as a pair.
#[derive(Default)]
#[repr(align(128))]
struct Line {
    sides: [Side; 2],
}

pub struct Grace {
    lines: Box<[Line; LINES]>,
    epoch: AtomicU64,
    barrier: Barrier,
    /// The last epoch within which there was a barrier, and one more.
    barred: AtomicU64,
    /// How often a writer slept.
    naps: AtomicU64,
    /// Hits and misses when counting began again.
    counted: [AtomicU64; 2],
}

/// A reader inside; what it found in the table stays until it is dropped.
pub struct Visit<'a> {
    side: &'a Side,
    place: Place,
    outcome: Cell<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Hit,
    Miss,
    Other,
}

impl Visit<'_> {
    #[inline]
    pub fn hit(&self) {
        self.outcome.set(Outcome::Hit);
    }

    #[inline]
    pub fn miss(&self) {
        self.outcome.set(Outcome::Miss);
    }
}

impl Drop for Visit<'_> {
    #[inline]
    fn drop(&mut self) {
        let count = match self.outcome.get() {
            Outcome::Hit => &self.side.hits,
            Outcome::Miss => &self.side.misses,
            Outcome::Other => &self.side.others,
        };
        self.place.count(count);
    }
}

impl Grace {
    pub fn new() -> Grace {
        Grace {
            lines: Box::new(std::array::from_fn(|_| Line::default())),
            epoch: AtomicU64::new(0),
            barrier: Barrier::new(),
            barred: AtomicU64::new(0),
            naps: AtomicU64::new(0),
            counted: Default::default(),
        }
    }

    #[inline]
    pub fn enter(&self) -> Visit<'_> {
        let place = Place::of_thread();
        let epoch = self.epoch.load(Ordering::Relaxed);
        let side = &self.lines[place.index()].sides[epoch as usize & 1];
        place.count(&side.entered);
        self.barrier.light();
        Visit { side, place, outcome: Cell::new(Outcome::Other) }
    }

    /// What was taken out of sight before this call may be used when the epoch is this. Both sides
    /// must be seen empty after this; the step that may be under way now has looked before.
    pub fn after(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst) + 3
    }

    /// Whether that epoch has come; moves on as far as the readers allow.
    pub fn passed(&self, epoch: u64) -> bool {
        loop {
            let now = self.epoch.load(Ordering::SeqCst);
            if now >= epoch {
                return true;
            }
            self.bar(now);
            if !self.is_empty((now as usize + 1) & 1) {
                return false;
            }
            // Where another thread was faster, the step is done as well.
            let _ = self.epoch.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Wait for an epoch, not for long: false if it has not come, which is to be asked again.
    /// Readers leave within a microsecond, unless the system took their CPU from them.
    pub fn wait(&self, epoch: u64) -> bool {
        for _ in 0..SPINS {
            if self.passed(epoch) {
                return true;
            }
            std::hint::spin_loop();
        }
        self.naps.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(NAP);
        false
    }

    /// How often a writer had to sleep until readers left.
    #[cfg(test)]
    pub fn naps(&self) -> u64 {
        self.naps.load(Ordering::Relaxed)
    }

    /// A barrier between what was taken out of sight before this epoch and the looks within it: one
    /// is enough, however often is looked.
    fn bar(&self, epoch: u64) {
        if self.barred.load(Ordering::SeqCst) <= epoch {
            self.barrier.heavy();
            self.barred.fetch_max(epoch + 1, Ordering::SeqCst);
        }
    }

    /// Those who left are read before those who entered, so that nobody is overlooked.
    fn is_empty(&self, side: usize) -> bool {
        self.lines.iter().all(|line| {
            let side = &line.sides[side];
            side.left() == side.entered.load(Ordering::SeqCst)
        })
    }

    /// Hits and misses of all visits since counting began.
    pub fn counted(&self) -> (u64, u64) {
        let [hits, misses] = self.all_counted();
        let since =
            |all: u64, n: usize| all.saturating_sub(self.counted[n].load(Ordering::Relaxed));
        (since(hits, 0), since(misses, 1))
    }

    /// Count from 0 again.
    pub fn reset_counts(&self) {
        for (base, count) in self.counted.iter().zip(self.all_counted()) {
            base.store(count, Ordering::Relaxed);
        }
    }

    fn all_counted(&self) -> [u64; 2] {
        let sides = || self.lines.iter().flat_map(|line| &line.sides);
        let sum = |count: fn(&Side) -> &AtomicU64| {
            sides().map(|side| count(side).load(Ordering::Relaxed)).sum()
        };
        [sum(|side| &side.hits), sum(|side| &side.misses)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_used_again_under_a_reader() {
        let grace = Grace::new();
        assert!(grace.passed(grace.after()), "nobody is in");
        let visit = grace.enter();
        let epoch = grace.after();
        assert!(!grace.passed(epoch));
        let later = grace.enter();
        later.hit();
        drop(visit);
        let epoch_of_later = grace.after();
        assert!(!grace.passed(epoch_of_later));
        drop(later);
        assert!(grace.passed(epoch_of_later) && grace.passed(epoch));
        assert_eq!(grace.counted(), (1, 0));
    }
}
