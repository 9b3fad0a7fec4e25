//! The time that items expire by.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the epoch, the resolution of expiry.
pub fn now_s() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32)
}
