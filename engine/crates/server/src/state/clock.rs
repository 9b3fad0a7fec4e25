//! The time that items expire by.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the epoch, the resolution of expiry. Tests can move and stop it.
#[derive(Debug, Default)]
pub struct Clock {
    moved_s: AtomicI64,
    /// The time at which it stands still; 0 while it runs.
    stopped_at_s: AtomicU32,
}

impl Clock {
    pub fn now_s(&self) -> u32 {
        match self.stopped_at_s.load(Ordering::Relaxed) {
            0 => self.running_s(),
            at_s => at_s,
        }
    }

    /// Let the clock stand still.
    pub fn stop(&self) {
        self.stopped_at_s.store(self.now_s(), Ordering::Relaxed);
    }

    /// Let the clock run again.
    pub fn resume(&self) {
        self.stopped_at_s.store(0, Ordering::Relaxed);
    }

    pub fn advance(&self, seconds: i64) {
        self.moved_s.fetch_add(seconds, Ordering::Relaxed);
        if self.stopped_at_s.load(Ordering::Relaxed) != 0 {
            self.stopped_at_s.store(self.running_s(), Ordering::Relaxed);
        }
    }

    fn running_s(&self) -> u32 {
        let real_s =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        (real_s as i64).wrapping_add(self.moved_s.load(Ordering::Relaxed)) as u32
    }
}
