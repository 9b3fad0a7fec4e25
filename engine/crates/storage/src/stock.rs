//! How many segments are emptied at a time. One, as long as readers leave at once: what is emptied
//! early is memory that holds nothing. Where a writer had to wait for a reader whose CPU was taken, the
//! next wait is for twice as many segments, so that its price is shared by what is stored in all of
//! them; where it had not, it is for one less.

/// Never more than one in so many of all segments.
const SHARE: usize = 4;

#[derive(Debug, Default)]
pub struct Stock {
    segments: usize,
    waited: bool,
}

impl Stock {
    /// A writer had to wait.
    pub fn waited(&mut self) {
        self.waited = true;
    }

    /// Segments that are to be emptied together.
    pub fn segments(&self) -> usize {
        self.segments.max(1)
    }

    /// When fewer are free, as many are emptied: what is alive in them needs room meanwhile.
    pub fn least(&self) -> usize {
        (self.segments() / 2).max(1)
    }

    /// Learn from what happened since this was last called; `allowed` is how many segments there may be.
    pub fn learn(&mut self, allowed: usize) {
        let wanted = if self.waited { 2 * self.segments() } else { self.segments() - 1 };
        self.segments = wanted.clamp(1, (allowed / SHARE).max(1));
        self.waited = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::{Mode, Store};

    const NOW: u32 = 1_700_000_000;

    /// Store so many items; every second one of those before has been read when it must leave.
    fn store_items(store: &Store, from: u32, to: u32) {
        for n in from..to {
            store.store(Mode::Set, &n.to_be_bytes(), 0, 0, &[b'x'; 700], NOW);
            store.get(&(n / 2 * 2).to_be_bytes(), None, NOW, |_| ());
        }
    }

    /// A reader of the worst kind: there is always one inside, and it goes on only when a writer
    /// sleeps for it.
    fn linger(store: &Store, inside: &Barrier, done: &AtomicBool) {
        let mut naps = store.grace.naps();
        let mut visit = store.grace.enter();
        inside.wait();
        while !done.load(Ordering::SeqCst) {
            let now = store.grace.naps();
            if now > naps {
                naps = now;
                visit = store.grace.enter();
            }
            thread::yield_now();
        }
        drop(visit);
    }

    #[test]
    fn a_wait_for_readers_is_shared_by_many_items() {
        const ITEMS: u32 = 3000;
        let store = Store::new(256 << 10);
        store_items(&store, 0, ITEMS);
        let (inside, done) = (Barrier::new(2), AtomicBool::new(false));
        let before = store.grace.after();
        thread::scope(|scope| {
            scope.spawn(|| linger(&store, &inside, &done));
            inside.wait();
            store_items(&store, ITEMS, 2 * ITEMS);
            done.store(true, Ordering::SeqCst);
        });
        let steps = (store.grace.after() - before) as u32;
        // More steps than items, if each wait were for one segment.
        assert!(steps * 8 < ITEMS, "{steps} steps of grace for {ITEMS} items");
    }

    #[test]
    fn waits_are_shared_by_more_and_more() {
        let mut stock = Stock::default();
        let mut next = |waited: bool| {
            if waited {
                stock.waited();
            }
            stock.learn(50);
            stock.segments()
        };
        assert_eq!([false, true, true, true].map(&mut next), [1, 2, 4, 8]);
        assert_eq!([true, true, false, true].map(&mut next), [12, 12, 11, 12]);
        assert_eq!([false; 12].map(&mut next)[9..], [2, 1, 1]);
    }
}
