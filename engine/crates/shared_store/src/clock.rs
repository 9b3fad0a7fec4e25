//! The time that the store is given.

use rustix::time::{ClockId, clock_gettime};

/// Seconds since the epoch, from a clock that is read without a system call.
#[inline]
pub fn now_s() -> u32 {
    u32::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(u32::MAX)
}
