//! Sums over all kinds of operations of a tally.

use cachemark_load::{KindMetrics, Metrics};
use hdrhistogram::Histogram;

/// The response times of all kinds together.
pub fn responses(metrics: &Metrics) -> Histogram<u64> {
    let mut kinds = metrics.kinds().map(|(_, kind)| &kind.response);
    let mut sum = kinds.next().map_or_else(empty, Clone::clone);
    kinds.for_each(|times| sum.add(times).expect("same bounds"));
    sum
}

fn empty() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are valid")
}

/// Operations that were begun and have ended.
pub fn attempts(metrics: &Metrics) -> u64 {
    metrics.kinds().map(|(_, kind)| kind.attempts).sum()
}

/// Successful operations, except the ones that stored nothing.
pub fn succeeded(kind: &KindMetrics) -> u64 {
    kind.ok - kind.not_stored
}

/// How many keys were found, and how many were not.
pub fn hits(metrics: &Metrics) -> (u64, u64) {
    metrics
        .kinds()
        .fold((0, 0), |(hits, misses), (_, kind)| (hits + found(kind), misses + kind.misses))
}

/// Keys that were found. A `cas` that stored nothing has found its key, and is no hit.
pub fn found(kind: &KindMetrics) -> u64 {
    kind.hits.saturating_sub(kind.not_stored)
}
