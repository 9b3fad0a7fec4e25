//! A handle to a run that is going on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cachemark_tape::Tape;

use crate::event_loop::SharedState;
use crate::record::{Interval, Intervals};

/// A handle to a run that is going on.
#[derive(Clone, Default)]
pub struct RunControl {
    pub(crate) shared: Arc<SharedState>,
}

impl RunControl {
    /// A handle that also tells what is recorded, about every so often.
    pub fn with_intervals(tape: &Tape, threads: usize, every: Duration) -> RunControl {
        let intervals = Intervals::new(tape, threads, every);
        RunControl { shared: Arc::new(SharedState { intervals, ..SharedState::default() }) }
    }

    /// Whether intervals can be told of a tape: not of one with operations without a reply.
    pub fn supports_intervals(tape: &Tape) -> bool {
        Intervals::supports(tape)
    }

    /// Whether it tells what is recorded.
    pub fn has_intervals(&self) -> bool {
        self.shared.intervals.is_some()
    }

    /// What was recorded since the last call; `None` if nothing was handed over.
    pub fn interval(&self) -> Option<Interval> {
        self.shared.intervals.as_ref()?.take()
    }

    /// End the run; it drains what is outstanding.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Operations that succeeded and that failed so far.
    pub fn progress(&self) -> (u64, u64) {
        let shared = &self.shared;
        (shared.ok.load(Ordering::Relaxed), shared.failed.load(Ordering::Relaxed))
    }
}
