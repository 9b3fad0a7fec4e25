//! Distributions of integers: sizes of values and keys, and expiry times.
//!
//! The number that belongs to a key is a function of the key: the distribution at a hash of the key.

use std::str::FromStr;

use super::error::{WorkloadError, invalid};
use crate::random::mix;

/// The largest value size that is drawn from an unbounded distribution: below the usual item limit of 1
/// MiB.
pub const MAX_SIZE: u32 = 1_000_000;
/// The longest expiry time that is drawn: memcached takes longer ones for a date.
pub const MAX_EXPTIME_S: u32 = 30 * 24 * 3600;

/// A range of integers with both ends: `100`, `100..1000` or `1k..64k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntegerRange {
    pub low: u32,
    pub high: u32,
}

impl FromStr for IntegerRange {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        parse_range(text, bytes)
    }
}

/// A distribution of integers from 0 on.
#[derive(Clone, Debug, PartialEq)]
pub enum IntegerDistribution {
    /// Uniform over a range.
    Range(IntegerRange),
    /// Generalised Pareto: x = location + scale · ((1 − u)^−shape − 1) / shape.
    Gpareto { location: f64, scale: f64, shape: f64 },
    /// Generalised extreme value: x = location + scale · ((−ln u)^−shape − 1) / shape.
    Gev { location: f64, scale: f64, shape: f64 },
    /// x = median · exp(sigma · z), z standard normal.
    Lognormal { median: f64, sigma: f64 },
    /// One of several distributions, by weight.
    Weighted(Vec<(IntegerDistribution, f64)>),
    /// One for each part of the keys.
    Parts(Vec<IntegerDistribution>),
}

/// The syntax, for error messages.
const SYNTAX: &str = "write 100, 100..1000, gpareto:LOCATION:SCALE:SHAPE, pareto:LEAST:ALPHA, \
                     gev:LOCATION:SCALE:SHAPE, lognormal:MEDIAN:SIGMA, or several with weights: \
                     100=9,1k..4k=1; with parts of keys one for each part: 100..200;4k";

impl FromStr for IntegerDistribution {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<IntegerDistribution, WorkloadError> {
        IntegerDistribution::parse(text, bytes)
    }
}

impl From<IntegerRange> for IntegerDistribution {
    fn from(span: IntegerRange) -> IntegerDistribution {
        IntegerDistribution::Range(span)
    }
}

impl IntegerDistribution {
    /// Always the same number.
    pub fn fixed(number: u32) -> IntegerDistribution {
        IntegerDistribution::Range(IntegerRange { low: number, high: number })
    }

    /// Parse a distribution. `unit` parses its integers, with their suffixes.
    pub fn parse(
        text: &str,
        unit: fn(&str) -> Option<u32>,
    ) -> Result<IntegerDistribution, WorkloadError> {
        if text.contains(';') {
            let parts = text.split(';').map(|part| IntegerDistribution::parse(part.trim(), unit));
            return Ok(IntegerDistribution::Parts(parts.collect::<Result<_, _>>()?));
        }
        if !text.contains('=') {
            return IntegerDistribution::parse_one(text, unit);
        }
        let mut distributions = Vec::new();
        for entry in text.split(',') {
            let (distribution, weight) =
                entry.trim().split_once('=').unwrap_or((entry.trim(), "1"));
            match weight.parse::<f64>() {
                Ok(weight) if weight.is_finite() && weight > 0.0 => {
                    distributions
                        .push((IntegerDistribution::parse_one(distribution, unit)?, weight));
                }
                _ => return invalid(format!("{entry:?}: the weight must be above 0; {SYNTAX}")),
            }
        }
        Ok(IntegerDistribution::Weighted(distributions))
    }

    fn parse_one(
        text: &str,
        unit: fn(&str) -> Option<u32>,
    ) -> Result<IntegerDistribution, WorkloadError> {
        let Some((name, rest)) = text.split_once(':') else {
            return parse_range(text, unit).map(IntegerDistribution::Range);
        };
        let numbers: Vec<f64> = rest.split(':').filter_map(|n| n.parse().ok()).collect();
        let sound =
            numbers.len() == rest.split(':').count() && numbers.iter().all(|n| n.is_finite());
        let distribution = match (name, &numbers[..]) {
            ("gpareto", [location, scale, shape]) => {
                IntegerDistribution::Gpareto { location: *location, scale: *scale, shape: *shape }
            }
            ("pareto", [least, alpha]) => IntegerDistribution::Gpareto {
                location: *least,
                scale: least / alpha,
                shape: 1.0 / alpha,
            },
            ("gev", [location, scale, shape]) => {
                IntegerDistribution::Gev { location: *location, scale: *scale, shape: *shape }
            }
            ("lognormal", [median, sigma]) => {
                IntegerDistribution::Lognormal { median: *median, sigma: *sigma }
            }
            _ => return invalid(format!("{text:?} is not a distribution: {SYNTAX}")),
        };
        if sound && distribution.is_proper() {
            Ok(distribution)
        } else {
            invalid(format!("{text:?} is not a distribution: {SYNTAX}"))
        }
    }

    fn is_proper(&self) -> bool {
        match *self {
            IntegerDistribution::Gpareto { scale, shape, .. }
            | IntegerDistribution::Gev { scale, shape, .. } => {
                scale > 0.0 && scale.is_finite() && shape.is_finite()
            }
            IntegerDistribution::Lognormal { median, sigma } => median > 0.0 && sigma >= 0.0,
            IntegerDistribution::Range(_)
            | IntegerDistribution::Weighted(_)
            | IntegerDistribution::Parts(_) => true,
        }
    }

    /// The distribution in a part of the keys.
    pub fn of_part(&self, part: usize) -> &IntegerDistribution {
        match self {
            IntegerDistribution::Parts(parts) => parts[part].of_part(0),
            whole => whole,
        }
    }

    /// How many parts of keys it tells apart; `None`: it is the same for all.
    pub fn parts(&self) -> Option<usize> {
        match self {
            IntegerDistribution::Parts(parts) => Some(parts.len()),
            _ => None,
        }
    }

    /// The largest number that is drawn. Unbounded distributions are cut at `cut`.
    pub fn max_value(&self, cut: u32) -> u32 {
        match self {
            IntegerDistribution::Range(span) => span.high,
            IntegerDistribution::Weighted(distributions) => distributions
                .iter()
                .map(|(distribution, _)| distribution.max_value(cut))
                .max()
                .unwrap_or(0),
            IntegerDistribution::Parts(parts) => {
                parts.iter().map(|part| part.max_value(cut)).max().unwrap_or(0)
            }
            _ => cut,
        }
    }

    /// The smallest number that can be drawn.
    pub fn min_value(&self) -> u32 {
        match self {
            IntegerDistribution::Range(span) => span.low,
            IntegerDistribution::Weighted(distributions) => distributions
                .iter()
                .map(|(distribution, _)| distribution.min_value())
                .min()
                .unwrap_or(0),
            IntegerDistribution::Parts(parts) => {
                parts.iter().map(IntegerDistribution::min_value).min().unwrap_or(0)
            }
            IntegerDistribution::Gpareto { location, .. } => location.max(0.0).round() as u32,
            IntegerDistribution::Gev { .. } | IntegerDistribution::Lognormal { .. } => 0,
        }
    }

    /// The number at a hash. Unbounded distributions are cut at `cut`.
    pub fn draw(&self, hash: u64, cut: u32) -> u32 {
        match self {
            IntegerDistribution::Range(IntegerRange { low, high }) => {
                let width = u64::from(high - low) + 1;
                low + (hash % width) as u32
            }
            IntegerDistribution::Weighted(distributions) => {
                let whole: f64 = distributions.iter().map(|(_, weight)| weight).sum();
                let mut left = unit(hash) * whole;
                let chosen = distributions.iter().find(|(_, weight)| {
                    left -= weight;
                    left < 0.0
                });
                let (distribution, _) =
                    chosen.or(distributions.last()).expect("a weighted distribution has entries");
                distribution.draw(mix(hash), cut)
            }
            IntegerDistribution::Parts(_) => self.of_part(0).draw(hash, cut),
            IntegerDistribution::Lognormal { median, sigma } => {
                rounded(median * (sigma * normal(hash)).exp(), cut)
            }
            _ => rounded(self.quantile(unit(hash)), cut),
        }
    }

    /// The quantile x with P(X ≤ x) = u, 0 < u < 1, if there is a closed form; neither rounded nor cut.
    fn quantile(&self, u: f64) -> f64 {
        let tail = |base: f64, shape: f64| {
            if shape == 0.0 { -base.ln() } else { (base.powf(-shape) - 1.0) / shape }
        };
        match *self {
            IntegerDistribution::Gpareto { location, scale, shape } => {
                location + scale * tail(1.0 - u, shape)
            }
            IntegerDistribution::Gev { location, scale, shape } => {
                location + scale * tail(-u.ln(), shape)
            }
            _ => unreachable!("drawn without a quantile"),
        }
    }
}

fn rounded(x: f64, cut: u32) -> u32 {
    x.round().clamp(0.0, f64::from(cut)) as u32
}

/// A standard normal number from a hash (Box and Muller, 1958).
fn normal(hash: u64) -> f64 {
    let angle = std::f64::consts::TAU * unit(mix(hash));
    (-2.0 * unit(hash).ln()).sqrt() * angle.cos()
}

/// A number above 0 and below 1 from a hash.
fn unit(hash: u64) -> f64 {
    ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn parse_range(text: &str, unit: fn(&str) -> Option<u32>) -> Result<IntegerRange, WorkloadError> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (unit(low.trim()), unit(high.trim())) {
        (Some(low), Some(high)) if low <= high => Ok(IntegerRange { low, high }),
        _ => invalid(format!("{text:?} is not a range: {SYNTAX}")),
    }
}

/// Parse a number of bytes. The suffixes `k` and `m`, also as `kB` and `KiB`, stand for 1024 and 1024².
pub fn bytes(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let short = ["ib", "b"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let short = if short.ends_with(['k', 'm']) { short } else { &lower };
    parse_with_suffix(short, &[("k", 1 << 10), ("m", 1 << 20)])
}

/// Parse a number of seconds, with the suffixes `s`, `m`, `h` and `d`.
pub fn seconds(text: &str) -> Option<u32> {
    parse_with_suffix(text, &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)])
}

fn parse_with_suffix(text: &str, factors: &[(&str, u32)]) -> Option<u32> {
    let found =
        factors.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    number.parse::<u32>().ok()?.checked_mul(factor)
}
