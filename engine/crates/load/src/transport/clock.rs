//! The monotonic clock.

use std::num::NonZeroU64;
use std::thread;
use std::time::Duration;

use crate::io_traits::Clock;

/// CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: clock_gettime fills the struct that it is given, and every Linux has this clock.
        // (rustix's own call of the vDSO crashes under valgrind.)
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
}

/// Wait for the start of a window. This also sets the timer slack of the calling thread to 1 ns: by
/// default the kernel may delay each wake-up by 50 µs. If that is not permitted, the thread spins
/// longer.
pub fn wait_until(start_ns: u64) {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let spin_ns = 200_000;
    let left = start_ns.saturating_sub(Monotonic.now_ns());
    if left > spin_ns {
        thread::sleep(Duration::from_nanos(left - spin_ns));
    }
    while Monotonic.now_ns() < start_ns {
        std::hint::spin_loop();
    }
}
