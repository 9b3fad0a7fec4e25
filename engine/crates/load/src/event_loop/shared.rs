//! The state that the threads of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::record::Intervals;

/// The stop flag, the progress for an observer, and the records.
#[derive(Default)]
pub struct SharedState {
    pub stop: AtomicBool,
    pub ok: AtomicU64,
    pub failed: AtomicU64,
    /// Connections that were lost.
    pub lost: AtomicU64,
    pub intervals: Option<Intervals>,
    /// Players note each call of an open loop.
    pub logs_calls: bool,
}
