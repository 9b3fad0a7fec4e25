//! Metrics of short intervals, for a display or log while the run goes on. A thread hands over all of
//! its metrics and continues with empty ones. This costs nothing per operation, and per interval one
//! swap of a few hundred bytes; the watching thread merges.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use cachemark_tape::Tape;

use super::metrics::Metrics;

/// Empty metrics per thread: one is being filled, one waits to be read.
const EMPTY_METRICS_PER_THREAD: usize = 2;

/// The records of one thread in one interval.
struct ThreadInterval {
    metrics: Metrics,
    length_ns: u64,
}

/// The records of all threads in about one interval.
pub struct Interval {
    pub metrics: Metrics,
    /// Operations per second: the sum of the threads' rates, each over its own length.
    pub rate: f64,
    /// The longest length among the threads.
    pub length: Duration,
}

/// Exchanges metrics between the recording threads and the watching thread.
pub struct Intervals {
    pub(crate) every_ns: u64,
    empty_metrics: Mutex<Vec<Metrics>>,
    parts: Mutex<Vec<ThreadInterval>>,
    /// The sum of everything that was taken, for the end of the run.
    taken: Mutex<Metrics>,
}

impl Intervals {
    /// Storage for a number of threads. `None` if the tape has operations without a reply: an error
    /// that arrives later would be subtracted from the wrong interval.
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

    /// Whether counts of an interval stay valid: only if every operation has a reply.
    pub(crate) fn supports(tape: &Tape) -> bool {
        (0..tape.op_count()).all(|j| !tape.op(j).noreply)
    }

    /// Hand over a thread's metrics and leave empty ones. Returns false, and does nothing, if that is
    /// not possible at once. It never waits and never allocates.
    pub(crate) fn swap(&self, metrics: &mut Metrics, length_ns: u64) -> bool {
        let (Ok(mut empty_metrics), Ok(mut parts)) =
            (self.empty_metrics.try_lock(), self.parts.try_lock())
        else {
            return false;
        };
        let Some(mut empty) = empty_metrics.pop() else { return false };
        // The maximum in flight belongs to the whole window.
        empty.max_in_flight = mem::take(&mut metrics.max_in_flight);
        // The timeline also belongs to the whole window: metrics that are handed over have none.
        mem::swap(&mut empty.timeline, &mut metrics.timeline);
        empty.next_boundary_ns = metrics.next_boundary_ns;
        parts.push(ThreadInterval { metrics: mem::replace(metrics, empty), length_ns });
        true
    }

    /// The records that were handed over since the last call, if any.
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

    /// Add everything that was handed over to what the threads still have.
    pub(crate) fn complete(&self, rest: &mut Metrics) {
        let (Ok(taken), Ok(parts)) = (self.taken.lock(), self.parts.lock()) else { return };
        rest.add(&taken);
        parts.iter().for_each(|part| rest.add(&part.metrics));
    }
}
