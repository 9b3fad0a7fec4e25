//! Known bugs of load generators. The tests of the fidelity cases switch them on, and must find them.
//!
//! Without the feature `on`, `injected` is the constant `false`, and the compiler removes the bugs.
//! Only the tests of the fidelity cases use the feature.

/// A bug that other load generators have had, or that is easy to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The response time starts at the actual send: coordinated omission.
    SendStamp,
    /// Operations in flight at the end of the window are left out.
    DroppedInFlight,
    /// A timeout is counted, but its time is not recorded.
    DroppedTimeouts,
    /// If an operation times out, the younger ones on its connection are counted, but their waits are
    /// not recorded.
    DroppedCutOff,
    /// The percentiles of several recorders are averaged; their histograms should be merged.
    AveragedPercentiles,
    /// HdrHistogram's correction for coordinated omission is applied to every value.
    CorrectedHistogram,
    /// Operations that wait for a free connection are not counted as such.
    UnflaggedLimit,
    /// The clock has a resolution of 4 ms, like CLOCK_MONOTONIC_COARSE.
    CoarseClock,
    /// Times come from the wall clock, which may be set.
    WallClock,
    /// The histogram has no resolution below 10 µs.
    TenMicrosecondFloor,
    /// Arrivals have equal gaps where a Poisson process was asked for.
    UniformForPoisson,
    /// A percentile is taken one rank too high.
    PercentileOneMore,
    /// A percentile is taken one rank too low.
    PercentileOneLess,
    /// The values in replies are not checked.
    UnverifiedValues,
    /// A time above the highest value of the histogram is recorded as that value, without a count.
    SilentOverflow,
    /// Operations that are due wait until all replies that have arrived are read.
    RepliesFirst,
    /// A group's time ends before its last operation.
    GroupEndsEarly,
    /// A group's time begins after its first operation.
    GroupBeginsLate,
    /// Each group is counted twice.
    GroupTwice,
    /// A group is counted although one of its operations failed.
    GroupDespiteFailure,
}

impl Bug {
    pub const ALL: [Bug; 20] = [
        Bug::SendStamp,
        Bug::DroppedInFlight,
        Bug::DroppedTimeouts,
        Bug::DroppedCutOff,
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
        Bug::GroupEndsEarly,
        Bug::GroupBeginsLate,
        Bug::GroupTwice,
        Bug::GroupDespiteFailure,
    ];
}

/// Whether this build can inject bugs.
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

    /// Call `run` with a bug on this thread.
    pub fn with_bug<T>(bug: Option<Bug>, run: impl FnOnce() -> T) -> T {
        INJECTED.set(bug);
        let result = run();
        INJECTED.set(None);
        result
    }
}
