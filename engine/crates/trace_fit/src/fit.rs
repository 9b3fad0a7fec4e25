//! The fit: each property by itself, then what the tape lacks.

use cachemark_miss_ratio::{Policy, Request};
use cachemark_tape::Arrivals;
use serde::Serialize;

use crate::arrivals::fit_arrivals;
use crate::collected::{Collected, KeyFacts, MOST_REQUESTS};
use crate::curves::{apart, misses, order_matters, sizes};
use crate::distances::{
    Beside, Distance, LIMIT_OF_SAMPLES, Sides, besides, by_request_apart, distances,
};
use crate::experiment::{DrawnKeys, FittedWorkload};
use crate::parts::parts_of;
use crate::played::requests_of;
use crate::rank_law::{RankLaw, fit_ranks};
use crate::recency_law::recency;
use crate::value_table::value_table;

/// A distribution whose curve is this close needs no rival.
const CLOSE: f64 = 0.01;
/// Numbers of parts that are tried, in this order.
const MOST_PARTS: [usize; 3] = [2, 3, 5];
/// A part of the trace that matters less is not told.
const TOLD: f64 = 0.01;
const LATE_KEYS_TOLD: f64 = 0.05;
/// An exponent of less, or of less than two standard errors, looks like a uniform distribution.
const UNIFORM_BELOW: f64 = 0.02;
/// memcached takes longer ones for a date.
const LONGEST_TTL_S: u32 = 30 * 24 * 3600;

/// A workload, and how far it is from the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    pub requests: u64,
    pub workload: FittedWorkload,
    pub popularity: RankLaw,
    pub distances: Vec<Distance>,
    pub beside: Vec<Beside>,
    /// The properties of the trace that the workload lacks.
    pub missing: Vec<String>,
}

/// Fit a workload to the requests of a trace. An error says what the trace lacks.
pub fn fit(mut collected: Collected) -> Result<Fit, String> {
    let statistics = collected.statistics();
    let operations = collected.played().count() as u64;
    let duration_s = collected.duration_s();
    let rate = (collected.has_times && duration_s > 0.0)
        .then(|| rounded(operations as f64 / duration_s, 6));
    let dispersions = statistics.as_ref().map_or(&[][..], |of| &of.bursts[..]);
    let schedule =
        rate.map_or(String::from("closed"), |rate| written(fit_arrivals(dispersions, rate)));
    let (drawn, popularity) =
        drawn(&collected).ok_or("no operation has a size: a fit needs them")?;
    let mix = mix(&collected)?;
    let workload = FittedWorkload { mix, drawn, schedule, rate, duration_s, operations };
    compared(collected, workload, popularity)
}

/// The keys with their properties, by popularity alone; `None`: no key has a size.
fn drawn(collected: &Collected) -> Option<(DrawnKeys, RankLaw)> {
    let known: Vec<u32> = collected.keys.values().filter_map(|facts| facts.value_bytes).collect();
    let value_size = value_table(known)?;
    let counts: Vec<u32> =
        collected.keys.values().map(|facts| facts.requests).filter(|count| *count > 0).collect();
    let popularity = fit_ranks(&counts);
    let keys = popularity.keys.min(f64::from(u32::MAX)) as u32;
    // A key needs as many digits as their number has.
    let least_bytes = keys.saturating_sub(1).to_string().len() as u32;
    let key_bytes = |facts: &KeyFacts| u32::from(facts.key_bytes).max(least_bytes);
    let key_bytes = collected.keys.values().map(key_bytes).collect();
    let ttl = |facts: &KeyFacts| Some(facts.ttl_s?.min(LONGEST_TTL_S));
    let ttls = collected.keys.values().filter_map(ttl).collect();
    let exponent = rounded(popularity.exponent, 3);
    let drawn = DrawnKeys {
        keys,
        distribution: if exponent < UNIFORM_BELOW.max(2.0 * popularity.error) {
            "uniform".to_owned()
        } else {
            format!("zipf:{exponent}")
        },
        key_length: value_table(key_bytes).unwrap_or_else(|| "20".to_owned()),
        value_size,
        exptime_s: value_table(ttls).unwrap_or_else(|| "0".to_owned()),
    };
    Some((drawn, popularity))
}

/// The workload with the distribution whose hit ratios are closest to the trace's, and its distances.
fn compared(
    collected: Collected,
    workload: FittedWorkload,
    popularity: RankLaw,
) -> Result<Fit, String> {
    let sizes = sizes(&collected);
    let policies = [Policy::Memcached, Policy::Lru];
    let curves = misses(&requests(&collected), &sizes, &policies);
    let curves_of = |played: &Collected| misses(&requests(played), &sizes, &policies);
    let mut best = closest(workload, &collected)?;
    let mut played = requests_of(&best.tape()?);
    let mut of_tape = curves_of(&played);
    let far = |of_tape: &[Vec<f64>]| -> f64 {
        curves.iter().zip(of_tape).map(|(trace, tape)| apart(trace, tape).0).sum()
    };
    let whole = best.clone();
    for most_parts in MOST_PARTS {
        if far(&of_tape) <= CLOSE * policies.len() as f64 {
            break;
        }
        let Some(rival) = by_parts(&whole, &collected, most_parts)? else { break };
        let of_rival = requests_of(&rival.tape()?);
        let curves_of_rival = curves_of(&of_rival);
        if far(&curves_of_rival) < far(&of_tape) {
            (best, played, of_tape) = (rival, of_rival, curves_of_rival);
        }
    }
    let order = order_matters(&collected, &sizes);
    let missing = missing(&collected, &played, &best, order);
    let sides = Sides { trace: &collected, tape: &played };
    Ok(Fit {
        requests: sides.trace.requests.len() as u64,
        distances: distances(&sides, &policies, &curves, &of_tape),
        beside: besides(&sides),
        workload: best,
        popularity,
        missing,
    })
}

/// The workload with the distribution of keys whose LRU curve is closest to that of the requests.
fn closest(workload: FittedWorkload, collected: &Collected) -> Result<FittedWorkload, String> {
    let sizes = sizes(collected);
    let curve = misses(&requests(collected), &sizes, &[Policy::Lru]);
    let distance = |workload: &FittedWorkload| -> Result<f64, String> {
        let tape = requests(&requests_of(&workload.tape()?));
        Ok(apart(&curve[0], &misses(&tape, &sizes, &[Policy::Lru])[0]).0)
    };
    let (mut best, mut least) = (workload.clone(), distance(&workload)?);
    for rivals in [by_law, by_order] {
        if least <= CLOSE {
            break;
        }
        for rival in rivals(&workload, collected) {
            let of_rival = distance(&rival)?;
            if of_rival < least {
                (best, least) = (rival, of_rival);
            }
        }
    }
    Ok(best)
}

/// The keys in parts that differ in size or expiry time, each with the distribution that is closest to its requests;
/// `None`: all keys are alike.
fn by_parts(
    whole: &FittedWorkload,
    collected: &Collected,
    most: usize,
) -> Result<Option<FittedWorkload>, String> {
    let keys = parts_of(collected, most);
    let (all_reads, all_writes) = collected.reads_and_writes();
    let mut parts = Vec::new();
    for hashes in &keys {
        let part = collected.of_keys(hashes);
        let (reads, writes) = part.reads_and_writes();
        let reads_share = reads as f64 / all_reads.max(1) as f64;
        let writes_share =
            if all_writes == 0 { reads_share } else { writes as f64 / all_writes as f64 };
        let is_write = |name: &str| name == "set" || name == "add";
        let weight = |(name, weight): &(String, f64)| {
            let share = if is_write(name) { writes_share } else { reads_share };
            (name.clone(), weight * share)
        };
        let mix = whole.mix.iter().map(weight).filter(|(_, weight)| *weight > 0.0).collect();
        let operations = reads + writes;
        let rate = whole.rate.map(|rate| rate * operations as f64 / whole.operations as f64);
        let Some((drawn, _)) = drawn(&part).filter(|_| operations > 0) else { return Ok(None) };
        let own = FittedWorkload { mix, drawn, rate, operations, ..whole.clone() };
        parts.push((closest(own, &part)?.drawn, reads_share, writes_share));
    }
    Ok((parts.len() > 1).then(|| FittedWorkload { drawn: DrawnKeys::of(&parts), ..whole.clone() }))
}

fn requests(collected: &Collected) -> Vec<Request> {
    collected.requests.iter().map(|kept| kept.request).collect()
}

/// Other distributions of keys: a loop over all of them, and, where stores bring new keys, the latest of them.
fn by_law(workload: &FittedWorkload, collected: &Collected) -> Vec<FittedWorkload> {
    let with = |distribution| workload.with_keys_seen(collected, distribution);
    let mut rivals = vec![with("sequential".to_owned())];
    if workload.mix.iter().any(|(name, _)| name == "set" || name == "add") {
        let exponents = [0.3, 0.5, 0.7, 0.9, 1.1, 1.3];
        rivals.extend(exponents.map(|exponent| with(format!("latest:{exponent}"))));
    }
    rivals
}

/// The order of the trace itself.
fn by_order(workload: &FittedWorkload, collected: &Collected) -> Vec<FittedWorkload> {
    let with = |distribution| workload.with_keys_seen(collected, distribution);
    recency(collected).map(with).into_iter().collect()
}

impl FittedWorkload {
    fn with_keys_seen(&self, collected: &Collected, distribution: String) -> FittedWorkload {
        let keys = collected.keys.len() as u32;
        let drawn = DrawnKeys { keys, distribution, ..self.drawn.clone() };
        FittedWorkload { drawn, ..self.clone() }
    }
}

/// Operations with their weights. A read that fills after a miss is a `fetch`, and its fill is no operation of its own.
fn mix(collected: &Collected) -> Result<Vec<(String, f64)>, String> {
    let (mut reads, mut others) = (0, std::collections::BTreeMap::<&str, u64>::new());
    for (name, count) in &collected.operations {
        match &name[..] {
            "get" | "gets" | "mget" | "fetch" => reads += count,
            "gat" | "gats" => *others.entry("gat").or_default() += count,
            "cas" | "replace" => *others.entry("replace").or_default() += count,
            "incr" | "decr" => {}
            name => *others.entry(name).or_default() += count,
        }
    }
    let filled = filled_part(collected);
    let all = (reads + others.values().sum::<u64>()) as f64;
    let fetches = reads as f64 * filled;
    let mut mix = vec![("fetch", fetches), ("get", reads as f64 - fetches)];
    mix.extend(others.iter().map(|(name, count)| (*name, *count as f64)));
    let weight = |(name, count): (&str, f64)| (name.to_owned(), rounded(count / all, 5));
    let mix: Vec<_> = mix.into_iter().map(weight).filter(|(_, weight)| *weight > 0.0).collect();
    if reads == 0 {
        return Err("it has no get: nothing can hit or miss".to_owned());
    }
    Ok(mix)
}

/// The part of misses that a fill follows. Where the trace does not say what missed: all.
fn filled_part(collected: &Collected) -> f64 {
    match collected.missed {
        0 => 1.0,
        missed => (collected.fills as f64 / missed as f64).min(1.0),
    }
}

/// The properties of the trace that a tape of this workload lacks, in words.
fn missing(
    collected: &Collected,
    played: &Collected,
    workload: &FittedWorkload,
    order: f64,
) -> Vec<String> {
    let mut told = Vec::new();
    let all = collected.requests.len() as f64;
    let has_order =
        ["sequential", "recency"].iter().any(|law| workload.drawn.distribution.contains(law));
    if order > TOLD && !has_order {
        told.push(format!(
            "locality: the order of the trace's reads moves the hit ratio by {:.1} points on average; here each key is \
             drawn independently of those before",
            100.0 * order
        ));
    }
    let hot = by_request_apart(collected, played);
    if let Some((name, far)) = hot.into_iter().find(|(_, far)| *far > LIMIT_OF_SAMPLES) {
        told.push(format!(
            "which keys are the hottest: {name} are {far:.2} apart by request; here they depend on popularity no more than their part of the keys does"
        ));
    }
    let (late, played_late) = (collected.late_keys(), played.late_keys());
    if (late - played_late).abs() > LATE_KEYS_TOLD {
        told.push(format!(
            "churn: {:.0} % of the trace's keys first come in its second half, here {:.0} %",
            100.0 * late,
            100.0 * played_late
        ));
    }
    if collected.joined as f64 > TOLD * all {
        told.push(format!(
            "multigets: {:.0} % of the keys were read together with another; here each is read alone",
            100.0 * collected.joined as f64 / all
        ));
    }
    let filled = filled_part(collected);
    if filled < 1.0 - TOLD {
        told.push(format!(
            "misses without a fill: {:.0} % of the misses; here as many reads of any keys fill nothing",
            100.0 * (1.0 - filled)
        ));
    }
    let counters = |(name, _): &(&String, &u64)| matches!(&name[..], "incr" | "decr");
    for (name, count) in collected.operations.iter().filter(counters).chain(&collected.unknown) {
        told.push(format!("{name}: {count} operations are not in the workload"));
    }
    if let Some(count) = collected.operations.get("cas") {
        told.push(format!("cas: {count} operations are played as replace"));
    }
    if collected.left > 0 {
        told.push(format!(
            "the end: only the first {MOST_REQUESTS} requests of {} were looked at",
            MOST_REQUESTS as u64 + collected.left
        ));
    }
    told
}

/// A number with `digits` digits behind the point.
fn rounded(number: f64, digits: i32) -> f64 {
    let factor = 10f64.powi(digits);
    (number * factor).round() / factor
}

fn written(arrivals: Arrivals) -> String {
    match arrivals {
        Arrivals::Bursts { factor, share, burst_ns } => {
            let share = rounded(share, 6).max(1e-6);
            // The product may be at most 1, also after rounding.
            let factor = ((factor * 1000.0).floor() / 1000.0).min(1.0 / share);
            format!("bursts:{factor}:{share}:{}us", (burst_ns / 1e3).round().max(1.0))
        }
        _ => "poisson".to_owned(),
    }
}
