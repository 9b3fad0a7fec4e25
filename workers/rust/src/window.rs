//! The begin and the end of a run, and waiting for an instant in it.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

/// A sleep ends some tens of µs late, so the last part of a wait polls the clock.
const SPIN_NS: u64 = 60_000;
/// A wait checks at this interval whether the run was stopped.
const LOOK_NS: u64 = 20_000_000;

/// ns of a clock that only goes forward.
pub fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// An instant of the wall clock, but not before a minimal time from now.
pub fn instant_of(start_unix_ns: u64, ahead_ns: u64) -> u64 {
    let wall_ns =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    clock_ns() + start_unix_ns.saturating_sub(wall_ns).max(ahead_ns)
}

/// Shared by the lanes of a run. A stop moves `end_ns` to the past.
pub struct Window {
    pub start_ns: u64,
    /// The instant at which the tape's time is 0.
    pub tape_start_ns: u64,
    pub end_ns: AtomicU64,
    pub stopped: AtomicBool,
    pub timeout_ns: u64,
    pub in_flight: AtomicU64,
    pub peak: AtomicU64,
}

impl Window {
    /// A window from an instant of the clock on, with a length.
    pub fn new(start_ns: u64, duration_ns: Option<u64>, timeout_ns: u64) -> Window {
        let end_ns = start_ns + duration_ns.unwrap_or(u64::MAX / 4);
        Window {
            start_ns,
            tape_start_ns: start_ns,
            end_ns: end_ns.into(),
            stopped: false.into(),
            timeout_ns,
            in_flight: 0.into(),
            peak: 0.into(),
        }
    }

    /// End it now.
    pub fn stop(&self) {
        self.end_ns.fetch_min(clock_ns(), Relaxed);
        self.stopped.store(true, Relaxed);
    }

    /// Wait for an instant. False if the run was stopped before it came.
    pub fn wait_until(&self, instant_ns: u64) -> bool {
        loop {
            let now = clock_ns();
            if now >= instant_ns {
                return true;
            }
            if self.stopped.load(Relaxed) {
                return false;
            }
            match (instant_ns - now).checked_sub(SPIN_NS) {
                Some(left) if left > 0 => {
                    std::thread::sleep(Duration::from_nanos(left.min(LOOK_NS)))
                }
                _ => spin_loop(),
            }
        }
    }

    /// After this instant, lanes send no more operations of the window.
    pub fn drain_ns(&self) -> u64 {
        let grace = if self.stopped.load(Relaxed) { 0 } else { 2 * self.timeout_ns };
        self.end_ns.load(Relaxed) + grace
    }
}
