//! What was recorded second by second, without a record of its own: a thread hands over its whole
//! tally and goes on with an empty one. An operation costs nothing, a second one exchange of a few
//! hundred bytes; merging is left to whoever watches.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use cachemark_tape::Tape;

use super::metrics::Metrics;

/// Empty tallies for each thread: one is being filled, one waits to be read.
const EMPTY_METRICS_PER_THREAD: usize = 2;

/// What a thread recorded in a stretch of the window.
struct ThreadInterval {
    metrics: Metrics,
    length_ns: u64,
}

/// What all threads recorded in about one interval.
pub struct Interval {
    pub metrics: Metrics,
    /// Operations per second: the sum over the threads, each by its own length.
    pub rate: f64,
    /// The longest of the threads' lengths.
    pub length: Duration,
}

/// The exchange between the threads that record and the one that watches.
pub struct Intervals {
    pub(crate) every_ns: u64,
    empty_metrics: Mutex<Vec<Metrics>>,
    parts: Mutex<Vec<ThreadInterval>>,
    /// Everything that was taken, for the end.
    taken: Mutex<Metrics>,
}

impl Intervals {
    /// Room for so many threads; `None` for a tape with operations without a reply, as an error of
    /// theirs takes back what an earlier interval has counted.
    pub fn new(tape: &Tape, threads: usize, every: Duration) -> Option<Intervals> {
        if !Intervals::supports(tape) {
            return None;
        }
        let empty_metrics =
            (0..EMPTY_METRICS_PER_THREAD * threads).map(|_| Metrics::new(tape, 0)).collect();
        Some(Intervals {
            every_ns: every.as_nanos() as u64,
            empty_metrics: Mutex::new(empty_metrics),
            parts: Mutex::new(Vec::with_capacity(EMPTY_METRICS_PER_THREAD * threads)),
            taken: Mutex::new(Metrics::empty(0)),
        })
    }

    /// Whether nothing that an interval counts is taken back later.
    pub(crate) fn supports(tape: &Tape) -> bool {
        (0..tape.op_count()).all(|j| !tape.op(j).noreply)
    }

    /// Hand a thread's tally over, and leave an empty one; false, and nothing done, where none is
    /// to be had at once. It neither waits nor allocates.
    pub(crate) fn swap(&self, metrics: &mut Metrics, length_ns: u64) -> bool {
        let (Ok(mut empty_metrics), Ok(mut parts)) =
            (self.empty_metrics.try_lock(), self.parts.try_lock())
        else {
            return false;
        };
        let Some(mut empty) = empty_metrics.pop() else { return false };
        // The most at once is of a whole window.
        empty.max_in_flight = mem::take(&mut metrics.max_in_flight);
        // So is its course; those that are handed over stay empty.
        mem::swap(&mut empty.timeline, &mut metrics.timeline);
        empty.next_boundary_ns = metrics.next_boundary_ns;
        parts.push(ThreadInterval { metrics: mem::replace(metrics, empty), length_ns });
        true
    }

    /// What was handed over since the last call; `None` if nothing was.
    pub fn take(&self) -> Option<Interval> {
        let parts = mem::take(&mut *self.parts.lock().ok()?);
        let mut interval =
            Interval { metrics: Metrics::empty(0), rate: 0.0, length: Duration::ZERO };
        for ThreadInterval { mut metrics, length_ns } in parts {
            interval.metrics.add(&metrics);
            interval.rate += metrics.ok() as f64 * 1e9 / length_ns.max(1) as f64;
            interval.length = interval.length.max(Duration::from_nanos(length_ns));
            metrics.clear();
            self.empty_metrics.lock().ok()?.push(metrics);
        }
        self.taken.lock().ok()?.add(&interval.metrics);
        (!interval.length.is_zero()).then_some(interval)
    }

    /// Add everything that was handed over, taken or not, to what the threads have left.
    pub(crate) fn complete(&self, rest: &mut Metrics) {
        let (Ok(taken), Ok(parts)) = (self.taken.lock(), self.parts.lock()) else { return };
        rest.add(&taken);
        parts.iter().for_each(|part| rest.add(&part.metrics));
    }
}
