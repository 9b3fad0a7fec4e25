//! A handle to control and observe a run.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cachemark_tape::Tape;

use crate::event_loop::SharedState;
use crate::record::{Interval, Intervals};

/// A handle to control and observe a run from another thread.
#[derive(Clone, Default)]
pub struct RunControl {
    pub(crate) shared: Arc<SharedState>,
}

impl RunControl {
    /// A handle that also returns the metrics of intervals of this length.
    pub fn with_intervals(tape: &Tape, threads: usize, every: Duration) -> RunControl {
        let intervals = Intervals::new(tape, threads, every);
        RunControl { shared: Arc::new(SharedState { intervals, ..SharedState::default() }) }
    }

    /// A handle that also returns a record of each call of an open loop.
    pub fn with_call_log() -> RunControl {
        RunControl { shared: Arc::new(SharedState { logs_calls: true, ..SharedState::default() }) }
    }

    /// Whether a tape can be observed in intervals: only if every operation has a reply.
    pub fn supports_intervals(tape: &Tape) -> bool {
        Intervals::supports(tape)
    }

    /// Whether this handle returns intervals.
    pub fn has_intervals(&self) -> bool {
        self.shared.intervals.is_some()
    }

    /// The records since the last call; `None` if there are none.
    pub fn interval(&self) -> Option<Interval> {
        self.shared.intervals.as_ref()?.take()
    }

    /// Stop the run. Operations in flight are still answered.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// The next slice goes on after a stop.
    pub(crate) fn clear_stop(&self) {
        self.shared.stop.store(false, Ordering::Relaxed);
    }

    /// Operations that have succeeded and that have failed so far.
    pub fn progress(&self) -> (u64, u64) {
        let shared = &self.shared;
        (shared.ok.load(Ordering::Relaxed), shared.failed.load(Ordering::Relaxed))
    }

    /// Connections that were lost so far. No operation fails with one on which none was in flight.
    pub fn lost_connections(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}
