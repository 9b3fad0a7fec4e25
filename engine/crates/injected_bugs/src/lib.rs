//! Bugs that load generators are known for, to be switched on by the tests that must find them.
//!
//! Without the feature `on` the question `injected` is the constant `false`, and nothing of a bug is
//! compiled. Only the tests of the fidelity cases ask for the feature.

/// A bug, and where it has been seen or is easily made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The response time runs from the actual send: coordinated omission.
    SendStamp,
    /// What is outstanding when the window ends is left out.
    DroppedInFlight,
    /// What timed out is counted, but its time is left out of the histogram.
    DroppedTimeouts,
    /// Percentiles of several recorders are averaged instead of their histograms merged.
    AveragedPercentiles,
    /// HdrHistogram's correction for coordinated omission is applied to every value.
    CorrectedHistogram,
    /// Operations that wait for a connection with room are not counted as such.
    UnflaggedLimit,
    /// The clock goes in steps of 4 ms, as CLOCK_MONOTONIC_COARSE does.
    CoarseClock,
    /// Times are taken from the wall clock, which is set now and then.
    WallClock,
    /// The histogram tells nothing apart below 10 µs.
    TenMicrosecondFloor,
    /// Arrivals at equal gaps where a Poisson process is asked for.
    UniformForPoisson,
    /// A percentile is taken one rank too high.
    PercentileOneMore,
    /// A percentile is taken one rank too low.
    PercentileOneLess,
    /// The values of replies are not looked at.
    UnverifiedValues,
    /// A time above the histogram's highest is recorded as that, and nothing is said.
    SilentOverflow,
    /// What is due is not looked at before all replies that came are read.
    RepliesFirst,
}

impl Bug {
    pub const ALL: [Bug; 15] = [
        Bug::SendStamp,
        Bug::DroppedInFlight,
        Bug::DroppedTimeouts,
        Bug::AveragedPercentiles,
        Bug::CorrectedHistogram,
        Bug::UnflaggedLimit,
        Bug::CoarseClock,
        Bug::WallClock,
        Bug::TenMicrosecondFloor,
        Bug::UniformForPoisson,
        Bug::PercentileOneMore,
        Bug::PercentileOneLess,
        Bug::UnverifiedValues,
        Bug::SilentOverflow,
        Bug::RepliesFirst,
    ];
}

/// Whether bugs can be planted in this build at all.
pub const ENABLED: bool = cfg!(feature = "on");

#[cfg(not(feature = "on"))]
#[inline(always)]
pub const fn injected(_: Bug) -> bool {
    false
}

#[cfg(feature = "on")]
pub use switch::{injected, with_bug};

#[cfg(feature = "on")]
mod switch {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static INJECTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Whether this thread runs with that bug.
    #[inline]
    pub fn injected(bug: Bug) -> bool {
        INJECTED.get() == Some(bug)
    }

    /// Run with a bug, on this thread.
    pub fn with_bug<T>(bug: Option<Bug>, run: impl FnOnce() -> T) -> T {
        INJECTED.set(bug);
        let result = run();
        INJECTED.set(None);
        result
    }
}
