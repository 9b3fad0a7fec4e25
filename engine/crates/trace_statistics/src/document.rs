//! The statistics as one document.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Collector;
use crate::bursts::Dispersion;
use crate::hot_keys::HotKey;
use crate::keys::KeyStatistics;
use crate::multigets::MultigetStatistics;
use crate::sizes::SizeDistribution;
use crate::timeline::TimeWindow;
use crate::ttls::TtlStatistics;

const SHOWN_KEYS: usize = 20;
/// The most popular keys, whose sum is told for several numbers of them.
const SUMMED: [usize; 4] = [1, 10, 100, 1000];

/// Reads, and what came of them where the trace says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    pub hits: u64,
    pub misses: u64,
    pub unknown: u64,
}

impl Reads {
    pub(crate) fn add(&mut self, succeeded: Option<bool>, count: u64) {
        match succeeded {
            Some(true) => self.hits += count,
            Some(false) => self.misses += count,
            None => self.unknown += count,
        }
    }

    pub(crate) fn join(&mut self, other: Reads) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.unknown += other.unknown;
    }
}

/// What the traffic of a trace is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceStatistics {
    pub requests: u64,
    pub operations: BTreeMap<String, u64>,
    pub reads: Reads,
    /// Between the first and the last record; 0 without times.
    pub duration_s: f64,
    /// What all times are multiples of.
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

pub(crate) fn document(of: Collector) -> TraceStatistics {
    let mut hot_keys = of.hot.hottest();
    let least = |key: &HotKey| key.count - key.error;
    let sum = |number: &usize| hot_keys.iter().take(*number).map(least).sum::<u64>() as f64;
    let top_shares = SUMMED
        .iter()
        .filter(|number| **number <= hot_keys.len())
        .map(|number| (*number, sum(number) / of.requests as f64))
        .collect();
    hot_keys.truncate(SHOWN_KEYS);
    TraceStatistics {
        requests: of.requests,
        operations: of.operations,
        reads: of.reads,
        duration_s: of.bursts.duration_ns() as f64 / 1e9,
        resolution_s: of.bursts.resolution_ns() as f64 / 1e9,
        key_bytes: of.key_sizes.distribution(),
        read_value_bytes: of.read_sizes.distribution(),
        written_value_bytes: of.write_sizes.distribution(),
        ttls: of.ttls.statistics(),
        keys: of.keys.statistics(of.requests),
        hot_keys,
        top_shares,
        multigets: of.multigets.statistics(),
        bursts: of.bursts.dispersions(),
        window_s: of.timeline.width_ns as f64 / 1e9,
        timeline: of.timeline.windows,
    }
}
