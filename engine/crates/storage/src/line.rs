//! Lines of counters that threads have for themselves: the one place where a thread's is told.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many lines there are; the last is for all threads that found no other free.
pub const LINES: usize = 64;
const COMMON: usize = LINES - 1;
/// This thread has not asked yet.
const UNKNOWN: usize = LINES;

/// Lines that no living thread has.
static FREE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Lines that were ever given out.
static GIVEN: Mutex<usize> = Mutex::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = Lease::take();
}

/// A line, as long as its thread lives.
struct Lease(usize);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lease {
    fn take() -> Lease {
        if let Some(free) = lock(&FREE).pop() {
            return Lease(free);
        }
        let mut given = lock(&GIVEN);
        let line = (*given).min(COMMON);
        *given = line + 1;
        Lease(line)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // What this thread still does before its end, it does as one of many.
        MINE.set(COMMON);
        if self.0 != COMMON {
            lock(&FREE).push(self.0);
        }
    }
}

/// The line of a thread.
#[derive(Clone, Copy)]
pub struct Line(usize);

impl Line {
    #[inline]
    pub fn of_thread() -> Line {
        let mine = MINE.get();
        Line(if mine == UNKNOWN { Line::ask() } else { mine })
    }

    #[cold]
    fn ask() -> usize {
        let line = LEASE.try_with(|lease| lease.0).unwrap_or(COMMON);
        MINE.set(line);
        line
    }

    /// Below `LINES`.
    #[inline]
    pub fn index(self) -> usize {
        self.0 % LINES
    }

    /// Add one to a counter of this line. Nobody else writes to those of a thread's own.
    #[inline]
    pub fn count(self, counter: &AtomicU64) {
        if self.0 == COMMON {
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
    fn no_two_living_threads_have_a_line_of_their_own_in_common() {
        const THREADS: usize = LINES + 10;
        for _ in 0..2 {
            let all_in = Barrier::new(THREADS);
            let lines: Vec<usize> = thread::scope(|scope| {
                let ask = || {
                    let line = Line::of_thread().index();
                    all_in.wait();
                    line
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(ask)).collect();
                threads.into_iter().map(|thread| thread.join().expect("a line")).collect()
            });
            let mut own: Vec<usize> = lines.into_iter().filter(|line| *line != COMMON).collect();
            let all = own.len();
            own.sort();
            own.dedup();
            assert_eq!(own.len(), all);
        }
    }

    #[test]
    fn nothing_is_lost_on_the_common_line() {
        let counter = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| Line(COMMON).count(&counter)));
            }
        });
        assert_eq!(counter.into_inner(), 4000);
    }
}
