//! The state that the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::record::Intervals;

/// The stop flag, and the progress that an observer sees.
#[derive(Default)]
pub struct SharedState {
    pub stop: AtomicBool,
    pub ok: AtomicU64,
    pub failed: AtomicU64,
    pub intervals: Option<Intervals>,
}
