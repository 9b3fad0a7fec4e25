//! How long the proxy held bytes, by its own clock.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer times count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// The time that one direction of all connections was held.
pub struct Held {
    bytes: u64,
    times: Histogram<u64>,
    /// The histogram rounds.
    least_ns: u64,
    most_ns: u64,
    /// How often nothing more was read, as too much was held already.
    full: u64,
}

/// The same in numbers, with percentiles to 0.1 %. Times are 0 if nothing was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HeldSummary {
    pub pieces: u64,
    pub bytes: u64,
    pub full: u64,
    pub least_ns: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub most_ns: u64,
}

impl Default for Held {
    fn default() -> Held {
        let times = Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("valid bounds");
        Held { bytes: 0, times, least_ns: u64::MAX, most_ns: 0, full: 0 }
    }
}

impl Held {
    /// A piece was held from its read to its first write.
    pub fn add(&mut self, ns: u64, bytes: usize) {
        self.times.saturating_record(ns);
        self.least_ns = self.least_ns.min(ns);
        self.most_ns = self.most_ns.max(ns);
        self.bytes += bytes as u64;
    }

    pub fn add_full(&mut self) {
        self.full += 1;
    }

    pub fn summary(&self) -> HeldSummary {
        let times = &self.times;
        HeldSummary {
            pieces: times.len(),
            bytes: self.bytes,
            full: self.full,
            least_ns: if times.is_empty() { 0 } else { self.least_ns },
            median_ns: times.value_at_quantile(0.5),
            p99_ns: times.value_at_quantile(0.99),
            most_ns: self.most_ns,
        }
    }
}
