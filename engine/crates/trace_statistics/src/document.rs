//! The statistics as one document.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::bursts::Dispersion;
use crate::hot_keys::HotKey;
use crate::keys::KeyStatistics;
use crate::multigets::MultigetStatistics;
use crate::reads::Reads;
use crate::sizes::SizeDistribution;
use crate::timeline::TimeWindow;
use crate::ttls::TtlStatistics;

/// The traffic of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStatistics {
    pub requests: u64,
    pub operations: BTreeMap<String, u64>,
    pub reads: Reads,
    /// Between the first and the last record; 0 without times.
    pub duration_s: f64,
    /// The step of which all times are multiples.
    pub resolution_s: f64,
    pub key_bytes: SizeDistribution,
    pub read_value_bytes: SizeDistribution,
    pub written_value_bytes: SizeDistribution,
    pub ttls: TtlStatistics,
    pub keys: KeyStatistics,
    /// The most popular keys, the hottest first.
    pub hot_keys: Vec<HotKey>,
    /// How many of the most popular keys, and their least share of all requests.
    pub top_shares: Vec<(usize, f64)>,
    pub multigets: MultigetStatistics,
    pub bursts: Vec<Dispersion>,
    /// The width of the windows of the timeline.
    pub window_s: f64,
    pub timeline: Vec<TimeWindow>,
}
