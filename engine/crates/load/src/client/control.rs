//! A handle to a run that is going on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cachemark_tape::Tape;

use crate::event_loop::Shared;
use crate::record::{Interval, Intervals};

/// A handle to a run that is going on.
#[derive(Clone, Default)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
}

impl Control {
    /// A handle that also tells what is recorded, about every so often.
    pub fn with_intervals(tape: &Tape, threads: usize, every: Duration) -> Control {
        let intervals = Intervals::new(tape, threads, every);
        Control { shared: Arc::new(Shared { intervals, ..Shared::default() }) }
    }

    /// Whether intervals can be told of a tape: not of one with operations without a reply.
    pub fn can_tell_intervals(tape: &Tape) -> bool {
        Intervals::can_tell(tape)
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
