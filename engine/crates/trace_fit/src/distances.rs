//! How far a tape is from a trace.

use cachemark_miss_ratio::Policy;
use serde::Serialize;

use crate::collected::{Collected, Kept, KeyFacts};
use crate::curves::apart;
use crate::kolmogorov::distance_of;

/// A distance of 0 (the same) to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distance {
    pub of: &'static str,
    /// `None`: unknown, for the reason.
    pub value: Option<f64>,
    /// The largest of those that `value` is the mean of.
    pub most: Option<f64>,
    /// A fit has at most this.
    pub limit: f64,
    pub reason: Option<&'static str>,
}

/// A figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    pub of: &'static str,
    pub trace: String,
    pub fit: String,
}

/// A trace, and its tape.
pub struct Sides<'a> {
    pub trace: &'a Collected,
    pub tape: &'a Collected,
}

const LIMIT_OF_HITS: f64 = 0.02;
pub const LIMIT_OF_SAMPLES: f64 = 0.05;
const SECOND_NS: u64 = 1_000_000_000;

/// The distances: hit ratios by the curves of the policies, the others by samples.
pub fn distances(
    sides: &Sides<'_>,
    policies: &[Policy],
    of_trace: &[Vec<f64>],
    of_tape: &[Vec<f64>],
) -> Vec<Distance> {
    let mut told = Vec::new();
    for ((policy, trace), tape) in policies.iter().zip(of_trace).zip(of_tape) {
        let (mean, most) = apart(trace, tape);
        let of = if *policy == Policy::Lru { "hit ratio, LRU" } else { "hit ratio, memcached" };
        let (value, most) = (Some(mean), Some(most));
        told.push(Distance { of, value, most, limit: LIMIT_OF_HITS, reason: None });
    }
    let sample = |of, value, reason| Distance {
        of,
        value,
        most: None,
        limit: LIMIT_OF_SAMPLES,
        reason: if value.is_none() { Some(reason) } else { None },
    };
    let by_key = |of: fn(&KeyFacts) -> Option<u32>| {
        let all = |side: &Collected| -> Vec<u32> { side.keys.values().filter_map(of).collect() };
        distance_of(&mut all(sides.trace), &mut all(sides.tape))
    };
    told.push(sample("value sizes, by key", by_key(|facts| facts.value_bytes), "no sizes"));
    let key_bytes = by_key(|facts| Some(u32::from(facts.key_bytes)));
    told.push(sample("key lengths, by key", key_bytes, "no keys"));
    let ttls = by_key(|facts| facts.ttl_s);
    told.push(sample("expiry times, by key", ttls, "the trace stores nothing"));
    let (value, reason) = gaps_apart(sides);
    told.push(sample("gaps between requests", value, reason));
    told
}

/// Distances of samples in which a key counts as often as it was asked for.
pub fn by_request_apart(trace: &Collected, tape: &Collected) -> Vec<(&'static str, f64)> {
    let by_request = |of: fn(&KeyFacts) -> Option<u32>| {
        let all = |side: &Collected| -> Vec<u32> {
            let known = |kept: &Kept| side.keys.get(&kept.request.hash).and_then(of);
            side.played().filter_map(known).collect()
        };
        distance_of(&mut all(trace), &mut all(tape))
    };
    let sizes = by_request(|facts| facts.value_bytes).map(|far| ("value sizes", far));
    let ttls = by_request(|facts| facts.ttl_s).map(|far| ("expiry times", far));
    sizes.into_iter().chain(ttls).collect()
}

fn gaps_apart(sides: &Sides<'_>) -> (Option<f64>, &'static str) {
    if !sides.trace.has_times {
        return (None, "the trace has no times");
    }
    if sides.trace.requests.iter().all(|kept| kept.at_ns.is_multiple_of(SECOND_NS)) {
        return (None, "the trace has whole seconds");
    }
    let gaps = |side: &Collected| -> Vec<u64> {
        let times: Vec<u64> = side.played().map(|kept| kept.at_ns).collect();
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect()
    };
    (distance_of(&mut gaps(sides.trace), &mut gaps(sides.tape)), "too few requests")
}

/// Figures of both.
pub fn besides(sides: &Sides<'_>) -> Vec<Beside> {
    let beside = |of, get: fn(&Collected) -> String| Beside {
        of,
        trace: get(sides.trace),
        fit: get(sides.tape),
    };
    vec![
        beside("keys that were seen", |side| side.keys.len().to_string()),
        beside("of these with one request", |side| percent_of(side.once())),
        beside("of these first seen in the second half", |side| percent_of(side.late_keys())),
    ]
}

fn percent_of(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
