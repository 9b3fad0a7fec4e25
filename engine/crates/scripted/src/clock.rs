//! The monotonic clock.

/// CLOCK_MONOTONIC in ns, as every process of this machine reads it.
#[inline]
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
