//! What the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::record::Intervals;

/// What the threads of a run share.
#[derive(Default)]
pub struct SharedState {
    pub stop: AtomicBool,
    pub ok: AtomicU64,
    pub failed: AtomicU64,
    pub intervals: Option<Intervals>,
}
