//! How popular keys are: a Zipf law over a number of keys, by maximum likelihood.
//!
//! If the key of rank r gets requests in proportion to r^-s, its number of requests is a Poisson number with that mean.
//! The exponent s is the one under which the numbers of keys with 1, 2, 3, … requests are the likeliest. Ranks are never
//! estimated from the counts, which would be biased. Any exponent is possible, 0 too: all keys are as likely. How many
//! keys there are, with those that got no request, follows from how many were seen.

use serde::Serialize;

/// Ranks up to this one count one by one, and further ones in groups.
const SINGLE_RANKS: u32 = 100;
const GROUP_WIDTH: f64 = 1.02;
/// Counts above a few are in classes of this width: real counts differ from any law by more than Poisson's noise.
const CLASS_WIDTH: f64 = 1.25;
const MOST_EXPONENT: f64 = 3.0;
/// At most this number of unseen keys is assumed, and a number for each seen one: a tape has all of them.
const MOST_UNSEEN: f64 = 5e6;
const MOST_FOR_SEEN: f64 = 20.0;
/// Above this mean, a Poisson number is nearly a normal one.
const NORMAL_FROM: f64 = 30.0;

/// A Zipf law over a number of keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RankLaw {
    pub exponent: f64,
    /// Its standard error.
    pub error: f64,
    pub keys: f64,
    /// The largest difference between the law and the counts of keys (Kolmogorov and Smirnov).
    pub distance: f64,
}

/// Keys by their counts: the first count of each class, and how many keys it has.
struct Classes {
    edges: Vec<u32>,
    keys: Vec<f64>,
    seen: f64,
    requests: f64,
}

impl Classes {
    fn of(counts: &[u32]) -> Classes {
        let most = counts.iter().copied().max().unwrap_or(1);
        let mut edges = vec![1];
        while edges[edges.len() - 1] <= most {
            let last = edges[edges.len() - 1];
            edges.push((last + 1).max((f64::from(last) * CLASS_WIDTH) as u32));
        }
        let mut keys = vec![0.0; edges.len() - 1];
        for count in counts {
            keys[edges.partition_point(|edge| edge <= count) - 1] += 1.0;
        }
        let requests = counts.iter().map(|count| f64::from(*count)).sum();
        Classes { edges, keys, seen: counts.len() as f64, requests }
    }

    /// How many keys of each class a law expects.
    fn expected(&self, exponent: f64, keys: f64) -> Vec<f64> {
        let means = Means::of(exponent, keys, self.requests);
        let mut expected = vec![0.0; self.keys.len()];
        let mut below = Vec::with_capacity(self.edges.len());
        for (mean, weight) in means.groups {
            below_edges(mean, &self.edges, &mut below);
            for (class, sum) in expected.iter_mut().enumerate() {
                *sum += weight * (below[class + 1] - below[class]).max(0.0);
            }
        }
        expected
    }

    fn log_likelihood(&self, exponent: f64) -> f64 {
        let expected = self.expected(exponent, self.all_keys(exponent));
        let sum: f64 = expected.iter().sum();
        let of = |(keys, expected): (&f64, &f64)| keys * (expected / sum).max(1e-12).ln();
        self.keys.iter().zip(&expected).map(of).sum()
    }

    /// The number of keys of which the law expects to see as many as were seen.
    fn all_keys(&self, exponent: f64) -> f64 {
        let seen = |keys: f64| Means::of(exponent, keys, self.requests).seen();
        let (mut low, mut high) =
            (self.seen, (self.seen * MOST_FOR_SEEN).min(self.seen + MOST_UNSEEN));
        if seen(high) <= self.seen {
            return high;
        }
        for _ in 0..40 {
            let middle = (low * high).sqrt();
            if seen(middle) < self.seen {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low * high).sqrt().round()
    }

    fn distance(&self, exponent: f64, keys: f64) -> f64 {
        let expected = self.expected(exponent, keys);
        let sum: f64 = expected.iter().sum();
        let (mut found, mut by_law, mut largest) = (0.0, 0.0, 0.0_f64);
        for (keys, expected) in self.keys.iter().zip(&expected) {
            found += keys / self.seen;
            by_law += expected / sum;
            largest = largest.max((found - by_law).abs());
        }
        largest
    }
}

/// Mean numbers of requests, and how many keys have each.
struct Means {
    groups: Vec<(f64, f64)>,
}

impl Means {
    fn of(exponent: f64, keys: f64, requests: f64) -> Means {
        let mut groups: Vec<(f64, f64)> = Vec::new();
        let mut first = 1.0;
        while first <= keys {
            let single = first < f64::from(SINGLE_RANKS);
            let next =
                if single { first + 1.0 } else { (first * GROUP_WIDTH).floor().max(first + 1.0) };
            let next = next.min(keys.floor() + 1.0);
            // The middle of the group's ranks, on the logarithmic scale.
            let rank: f64 = (first * (next - 1.0)).sqrt();
            groups.push((rank.powf(-exponent), next - first));
            first = next;
        }
        let sum: f64 = groups.iter().map(|(share, weight)| share * weight).sum();
        groups.iter_mut().for_each(|(share, _)| *share *= requests / sum);
        Means { groups }
    }

    /// How many keys get a request.
    fn seen(&self) -> f64 {
        self.groups.iter().map(|(mean, weight)| weight * -(-mean).exp_m1()).sum()
    }
}

/// For each edge, the probability that a Poisson number is below it.
fn below_edges(mean: f64, edges: &[u32], below: &mut Vec<f64>) {
    below.clear();
    if mean > NORMAL_FROM {
        let of = |edge: &u32| normal_below((f64::from(*edge) - 0.5 - mean) / mean.sqrt());
        return below.extend(edges.iter().map(of));
    }
    let (mut number, mut probability, mut sum) = (0, (-mean).exp(), 0.0);
    for edge in edges {
        while number < *edge && number < 200 {
            sum += probability;
            number += 1;
            probability *= mean / f64::from(number);
        }
        below.push(if *edge > 200 { 1.0 } else { sum });
    }
}

/// The probability that a standard normal number is below `z` (Abramowitz and Stegun 1964, 26.2.17).
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |sum, factor| (sum + factor) * t);
    let above = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum;
    if z > 0.0 { 1.0 - above } else { above }
}

/// The law for the counts of keys, in any order; each is at least 1.
pub fn fit_ranks(counts: &[u32]) -> RankLaw {
    let classes = Classes::of(counts);
    let likelihood = |exponent: f64| classes.log_likelihood(exponent);
    let steps = 30;
    let at = |step: i32| MOST_EXPONENT * f64::from(step) / f64::from(steps);
    let best = (0..=steps).max_by(|a, b| likelihood(at(*a)).total_cmp(&likelihood(at(*b))));
    let best = best.unwrap_or(0);
    let exponent = likeliest(at((best - 1).max(0)), at((best + 1).min(steps)), likelihood);
    let step = 0.01;
    let here = exponent.max(step);
    let bend = likelihood(here + step) - 2.0 * likelihood(here) + likelihood(here - step);
    let keys = classes.all_keys(exponent);
    RankLaw {
        exponent,
        error: if bend < 0.0 { step / (-bend).sqrt() } else { f64::INFINITY },
        keys,
        distance: classes.distance(exponent, keys),
    }
}

/// Where a function with one peak between two numbers is highest (golden section; Kiefer 1953).
fn likeliest(mut low: f64, mut high: f64, of: impl Fn(f64) -> f64) -> f64 {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..24 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if of(left) < of(right) {
            low = left;
        } else {
            high = right;
        }
    }
    f64::midpoint(low, high)
}
