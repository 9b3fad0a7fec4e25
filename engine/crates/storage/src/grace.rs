//! Grace: when memory that was taken from readers' sight may be written again.
//!
//! A reader counts itself in, looks, and counts itself out, on a line of counters that few other
//! threads use; nobody waits for anybody. Whoever wants to use memory again has taken it out of the
//! table first; once every line has been seen with nobody in, twice (new readers count on the other
//! of two sets, so that a line that is never empty cannot hold it up), no reader can look there.
//! This is sleepable read-copy-update (P. McKenney, "Sleepable RCU", 2006) with the counts of hits
//! and misses as the counts out.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const LINES: usize = 64;

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
    lines: Box<[Line]>,
    epoch: AtomicU64,
    /// Hits and misses when counting began again.
    counted: [AtomicU64; 2],
}

/// A reader inside; what it found in the table stays until it is dropped.
pub struct Visit<'a> {
    side: &'a Side,
    outcome: Cell<Outcome>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Hit,
    Miss,
    Other,
}

impl Visit<'_> {
    pub fn hit(&self) {
        self.outcome.set(Outcome::Hit);
    }

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
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Each thread has a line of its own, as long as there are enough.
fn line_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % LINES;
    }
    MINE.with(|mine| *mine)
}

impl Grace {
    pub fn new() -> Grace {
        Grace {
            lines: (0..LINES).map(|_| Line::default()).collect(),
            epoch: AtomicU64::new(0),
            counted: Default::default(),
        }
    }

    #[inline]
    pub fn enter(&self) -> Visit<'_> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let side = &self.lines[line_of_thread()].sides[epoch as usize & 1];
        side.entered.fetch_add(1, Ordering::SeqCst);
        Visit { side, outcome: Cell::new(Outcome::Other) }
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
            if !self.is_empty((now as usize + 1) & 1) {
                return false;
            }
            // Where another thread was faster, the step is done as well.
            let _ = self.epoch.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::SeqCst);
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
