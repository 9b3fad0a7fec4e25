//! An index for each thread, so that each thread has counters that no other thread writes to.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many indices there are. All threads that find no free one share the last.
pub const INDICES: usize = 64;
const SHARED_INDEX: usize = INDICES - 1;
/// This thread has no index yet.
const UNASSIGNED: usize = INDICES;

/// Indices that were used and are free again.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// The lowest index that was never used.
static NEXT: Mutex<usize> = Mutex::new(0);

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(UNASSIGNED) };
    static LEASE: Lease = Lease::take();
}

/// An index, which is free again when its thread ends.
struct Lease(usize);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    fn take() -> Lease {
        if let Some(free) = lock(&FREE).pop() {
            return Lease(free);
        }
        let mut next = lock(&NEXT);
        let index = (*next).min(SHARED_INDEX);
        *next = index + 1;
        Lease(index)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Until it ends, this thread uses the shared index.
        CURRENT.set(SHARED_INDEX);
        if self.0 != SHARED_INDEX {
            lock(&FREE).push(self.0);
        }
    }
}

/// The index of a thread.
#[derive(Clone, Copy)]
pub struct ThreadIndex(usize);

impl ThreadIndex {
    #[inline]
    pub fn current() -> ThreadIndex {
        let index = CURRENT.get();
        ThreadIndex(if index == UNASSIGNED { ThreadIndex::assign() } else { index })
    }

    #[cold]
    fn assign() -> usize {
        let index = LEASE.try_with(|lease| lease.0).unwrap_or(SHARED_INDEX);
        CURRENT.set(index);
        index
    }

    /// The index, below `INDICES`.
    #[inline]
    pub fn get(self) -> usize {
        self.0 % INDICES
    }

    /// Increment a counter that belongs to this index. No other thread writes to it, unless the index is
    /// the shared one.
    #[inline]
    pub fn increment(self, counter: &AtomicU64) {
        if self.0 == SHARED_INDEX {
            counter.fetch_add(1, Ordering::SeqCst);
        } else {
            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn no_two_live_threads_have_the_same_index() {
        const THREADS: usize = INDICES + 10;
        for _ in 0..2 {
            let all_in = Barrier::new(THREADS);
            let indices: Vec<usize> = thread::scope(|scope| {
                let ask = || {
                    let index = ThreadIndex::current().get();
                    all_in.wait();
                    index
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().expect("an index")).collect()
            });
            let mut own: Vec<usize> =
                indices.into_iter().filter(|index| *index != SHARED_INDEX).collect();
            let all = own.len();
            own.sort();
            own.dedup();
            assert_eq!(own.len(), all);
        }
    }

    #[test]
    fn no_count_is_lost_on_the_shared_index() {
        let counter = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..1000).for_each(|_| ThreadIndex(SHARED_INDEX).increment(&counter))
                });
            }
        });
        assert_eq!(counter.into_inner(), 4000);
    }
}
