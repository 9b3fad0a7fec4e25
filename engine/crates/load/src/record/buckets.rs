//! The counters of an HdrHistogram, for recording only.
//!
//! Recording means finding a bucket and incrementing it: a few instructions. For everything else the
//! counters are converted to an HdrHistogram with the same layout.

use hdrhistogram::Histogram;

use super::histogram::{HIGHEST_NS, histogram};

/// HdrHistogram's own layout: each doubling has 2 · 10³ buckets, rounded up to a power of two. The
/// lower half of them is the doubling before.
const SUB_BUCKET_HALF_BITS: u32 = 10;
/// Buckets that are checked together when most of them are zero.
const GROUP: usize = 32;
const COUNTS: usize = bucket_of(HIGHEST_NS) + 1;

/// The bucket of a time.
#[inline]
const fn bucket_of(ns: u64) -> usize {
    let doubling = (u64::BITS - 1 - (ns | 1).leading_zeros()).saturating_sub(SUB_BUCKET_HALF_BITS);
    ((doubling as usize) << SUB_BUCKET_HALF_BITS) + (ns >> doubling) as usize
}

/// The lowest time in a bucket.
const fn lowest_ns(bucket: usize) -> u64 {
    let doubling = ((bucket >> SUB_BUCKET_HALF_BITS) as u32).saturating_sub(1);
    ((bucket - ((doubling as usize) << SUB_BUCKET_HALF_BITS)) as u64) << doubling
}

#[derive(Clone, Debug)]
pub struct LatencyBuckets {
    counts: Box<[u64]>,
}

impl LatencyBuckets {
    pub fn new() -> LatencyBuckets {
        LatencyBuckets { counts: vec![0; COUNTS].into_boxed_slice() }
    }

    /// Count one time. `ns` must be within the bounds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[bucket_of(ns)] += 1;
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    pub fn is_empty(&self) -> bool {
        self.counts.chunks(GROUP).all(all_zero)
    }

    /// The same counts as an HdrHistogram.
    pub fn histogram(&self) -> Histogram<u64> {
        let mut histogram = histogram();
        self.add_to(&mut histogram);
        histogram
    }

    /// Add the counts to a histogram with the same bounds. Groups of empty buckets are skipped.
    pub fn add_to(&self, sum: &mut Histogram<u64>) {
        for (group, counts) in self.counts.chunks(GROUP).enumerate() {
            if all_zero(counts) {
                continue;
            }
            for (n, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                sum.saturating_record_n(lowest_ns(group * GROUP + n), *count);
            }
        }
    }
}

fn all_zero(counts: &[u64]) -> bool {
    counts.iter().fold(0, |any, count| any | count) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_equal_those_of_hdrhistogram() {
        // The edges of buckets and of doublings, and values between them.
        let around = |ns: u64| [ns.saturating_sub(1), ns, ns + 1];
        let powers = (0..37).flat_map(|bit| around(1 << bit).into_iter().chain(around(3 << bit)));
        let values = powers.chain((1..200).map(|n| n * n * n * 12_499)).chain([HIGHEST_NS]);
        for ns in values.map(|ns| ns.clamp(1, HIGHEST_NS)) {
            let mut times = LatencyBuckets::new();
            times.record(ns);
            let mut expected = histogram();
            expected.record(ns).expect("inside the bounds");
            assert_eq!(times.histogram(), expected, "{ns} ns");
        }
    }

    #[test]
    fn counts_are_added_and_cleared() {
        let (mut times, mut expected) = (LatencyBuckets::new(), histogram());
        for ns in (1..100_000).step_by(37) {
            times.record(ns);
            expected.record(ns).expect("inside the bounds");
        }
        assert_eq!(times.histogram(), expected);
        times.clear();
        assert!(times.histogram().is_empty());
    }
}
