//! The collector of a trace's statistics.

use std::collections::BTreeMap;

use cachemark_trace::file::Record;

use crate::document::TraceStatistics;
use crate::hot_keys::HotKey;
use crate::kind::Kind;
use crate::reads::Reads;
use crate::{bursts, hot_keys, keys, multigets, sizes, timeline, ttls};

const SHOWN_KEYS: usize = 20;
/// The most popular keys, whose sum is given for several numbers of them.
const SUMMED: [usize; 4] = [1, 10, 100, 1000];

/// Collects the statistics of a trace.
pub struct Collector {
    operations: BTreeMap<String, u64>,
    requests: u64,
    reads: Reads,
    key_sizes: sizes::Sizes,
    read_sizes: sizes::Sizes,
    write_sizes: sizes::Sizes,
    ttls: ttls::Ttls,
    keys: keys::KeyTable,
    hot: hot_keys::SpaceSaving,
    bursts: bursts::Bursts,
    multigets: multigets::Multigets,
    timeline: timeline::Timeline,
}

impl Collector {
    /// A collector that follows at most `most_keys` keys.
    pub fn new(most_keys: usize) -> Collector {
        Collector {
            operations: BTreeMap::new(),
            requests: 0,
            reads: Reads::default(),
            key_sizes: sizes::Sizes::default(),
            read_sizes: sizes::Sizes::default(),
            write_sizes: sizes::Sizes::default(),
            ttls: ttls::Ttls::default(),
            keys: keys::KeyTable::new(most_keys),
            hot: hot_keys::SpaceSaving::default(),
            bursts: bursts::Bursts::default(),
            multigets: multigets::Multigets::default(),
            timeline: timeline::Timeline::default(),
        }
    }

    /// Add the next record of the trace.
    pub fn add(&mut self, record: &Record<'_>) {
        let (kind, count) = (Kind::of(record.operation), u64::from(record.count));
        match self.operations.get_mut(record.operation) {
            Some(known) => *known += count,
            None => drop(self.operations.insert(record.operation.to_owned(), count)),
        }
        self.requests += count;
        let key_bytes = record.key_bytes.unwrap_or(record.key.len() as u32);
        self.key_sizes.add(key_bytes, count);
        self.add_sizes(record, kind, count);
        self.hot.add(record.key, count);
        let seen = self.keys.add(record, kind, key_bytes);
        self.multigets.add(record, kind);
        if let Some(at_ns) = record.at_ns {
            self.bursts.add(at_ns, count);
            let window = self.timeline.window(at_ns);
            window.add(record, kind, count);
            window.new_keys += seen;
            (window.live_items, window.live_bytes) = self.keys.live();
        }
    }

    fn add_sizes(&mut self, record: &Record<'_>, kind: Kind, count: u64) {
        match kind {
            Kind::Read => {
                self.reads.add(record.succeeded, count);
                if let Some(length) = record.length.filter(|_| record.succeeded != Some(false)) {
                    self.read_sizes.add(length, count);
                }
            }
            Kind::Write => {
                if let Some(length) = record.length {
                    self.write_sizes.add(length, count);
                }
                self.ttls.add(record.ttl_s, count);
            }
            Kind::Delete | Kind::Other => {}
        }
    }

    /// The statistics of all records so far.
    pub fn finish(self) -> TraceStatistics {
        let mut hot_keys = self.hot.hottest();
        let least = |key: &HotKey| key.count - key.error;
        let sum = |number: &usize| hot_keys.iter().take(*number).map(least).sum::<u64>() as f64;
        let top_shares = SUMMED
            .iter()
            .filter(|number| **number <= hot_keys.len())
            .map(|number| (*number, sum(number) / self.requests as f64))
            .collect();
        hot_keys.truncate(SHOWN_KEYS);
        TraceStatistics {
            requests: self.requests,
            operations: self.operations,
            reads: self.reads,
            duration_s: self.bursts.duration_ns() as f64 / 1e9,
            resolution_s: self.bursts.resolution_ns() as f64 / 1e9,
            key_bytes: self.key_sizes.distribution(),
            read_value_bytes: self.read_sizes.distribution(),
            written_value_bytes: self.write_sizes.distribution(),
            ttls: self.ttls.statistics(),
            keys: self.keys.statistics(self.requests),
            hot_keys,
            top_shares,
            multigets: self.multigets.statistics(),
            bursts: self.bursts.dispersions(),
            window_s: self.timeline.width_ns as f64 / 1e9,
            timeline: self.timeline.windows,
        }
    }
}
