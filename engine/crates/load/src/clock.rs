//! The monotonic clock, in ns since the program's own epoch.

use std::sync::OnceLock;
use std::time::Instant;

use crate::outside::Clock;

static EPOCH: OnceLock<Instant> = OnceLock::new();

/// CLOCK_MONOTONIC in ns since its first reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        EPOCH.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}
