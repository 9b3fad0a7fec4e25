//! What the traffic of a trace is. Records go in one after the other, in the order of their times, and a document comes
//! out. The memory is bounded however long the trace is.
//!
//! What belongs to requests is counted exactly: mix, sizes, expiry times, bursts, multigets. What belongs to keys is
//! counted for all keys as long as there are few enough, and then for a part of them, chosen by their hash; the
//! document has that part, and the error that comes from it.

mod bursts;
mod document;
mod hot_keys;
mod keys;
mod multigets;
mod popularity;
mod sizes;
mod timeline;
mod ttls;

use std::collections::BTreeMap;

use cachemark_trace::file::Record;

pub use bursts::Dispersion;
pub use document::{Reads, TraceStatistics};
pub use hot_keys::HotKey;
pub use keys::{Estimate, KeyStatistics, KeysOverTime};
pub use multigets::MultigetStatistics;
pub use popularity::{Popularity, RankShare, fit_exponent};
pub use sizes::SizeDistribution;
pub use timeline::TimeWindow;
pub use ttls::{TtlShare, TtlStatistics};

/// What an operation does, as far as these statistics tell operations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Delete,
    Other,
}

impl Kind {
    fn of(operation: &str) -> Kind {
        match operation {
            "get" | "gets" | "gat" | "gats" | "mget" | "fetch" => Kind::Read,
            "set" | "add" | "replace" | "cas" => Kind::Write,
            "delete" => Kind::Delete,
            _ => Kind::Other,
        }
    }
}

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
    /// A collector that follows at most so many keys.
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
        document::document(self)
    }
}
