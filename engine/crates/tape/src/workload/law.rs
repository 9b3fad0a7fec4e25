//! Laws that numbers follow: how long a value or a key is, when an item expires.
//!
//! A number that belongs to a key is a function of the key: the law at a hash of it.

use std::str::FromStr;

use super::error::{WorkloadError, bad};
use crate::random::mix;

/// The largest value size that is drawn from a law without an upper end: below the item limit of
/// 1 MiB that servers come with.
pub const SIZE_MOST: u32 = 1_000_000;
/// The longest expiry time that is drawn: what is longer, memcached reads as a date.
pub const EXPTIME_MOST_S: u32 = 30 * 24 * 3600;

/// A range of whole numbers, both ends included: `100`, `100..1000` or `1k..64k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub low: u32,
    pub high: u32,
}

impl FromStr for Span {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        span(text, bytes)
    }
}

/// A law for whole numbers of 0 or more.
#[derive(Clone, Debug, PartialEq)]
pub enum Law {
    /// Each number of the range alike.
    Span(Span),
    /// Generalised Pareto: x = location + scale · ((1 − u)^−shape − 1) / shape.
    Gpareto { location: f64, scale: f64, shape: f64 },
    /// Generalised extreme value: x = location + scale · ((−ln u)^−shape − 1) / shape.
    Gev { location: f64, scale: f64, shape: f64 },
    /// x = median · exp(sigma · z), z standard normal.
    Lognormal { median: f64, sigma: f64 },
    /// One of several laws, by weight.
    Weighted(Vec<(Law, f64)>),
}

/// How a law is written, for messages.
const FORMS: &str = "write 100, 100..1000, gpareto:LOCATION:SCALE:SHAPE, pareto:LEAST:ALPHA, \
                     gev:LOCATION:SCALE:SHAPE, lognormal:MEDIAN:SIGMA, or several with weights: \
                     100=9,1k..4k=1";

impl FromStr for Law {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Law, WorkloadError> {
        Law::parse(text, bytes)
    }
}

impl From<Span> for Law {
    fn from(span: Span) -> Law {
        Law::Span(span)
    }
}

impl Law {
    /// Always this number.
    pub fn fixed(number: u32) -> Law {
        Law::Span(Span { low: number, high: number })
    }

    /// Read a law; `unit` reads its whole numbers, with their suffixes.
    pub fn parse(text: &str, unit: fn(&str) -> Option<u32>) -> Result<Law, WorkloadError> {
        if !text.contains('=') {
            return Law::parse_one(text, unit);
        }
        let mut laws = Vec::new();
        for entry in text.split(',') {
            let (law, weight) = entry.trim().split_once('=').unwrap_or((entry.trim(), "1"));
            match weight.parse::<f64>() {
                Ok(weight) if weight.is_finite() && weight > 0.0 => {
                    laws.push((Law::parse_one(law, unit)?, weight));
                }
                _ => return bad(format!("{entry:?}: the weight must be above 0; {FORMS}")),
            }
        }
        Ok(Law::Weighted(laws))
    }

    fn parse_one(text: &str, unit: fn(&str) -> Option<u32>) -> Result<Law, WorkloadError> {
        let Some((name, rest)) = text.split_once(':') else {
            return span(text, unit).map(Law::Span);
        };
        let numbers: Vec<f64> = rest.split(':').filter_map(|n| n.parse().ok()).collect();
        let sound =
            numbers.len() == rest.split(':').count() && numbers.iter().all(|n| n.is_finite());
        let law = match (name, &numbers[..]) {
            ("gpareto", [location, scale, shape]) => {
                Law::Gpareto { location: *location, scale: *scale, shape: *shape }
            }
            ("pareto", [least, alpha]) => {
                Law::Gpareto { location: *least, scale: least / alpha, shape: 1.0 / alpha }
            }
            ("gev", [location, scale, shape]) => {
                Law::Gev { location: *location, scale: *scale, shape: *shape }
            }
            ("lognormal", [median, sigma]) => Law::Lognormal { median: *median, sigma: *sigma },
            _ => return bad(format!("{text:?} is no law: {FORMS}")),
        };
        if sound && law.is_proper() { Ok(law) } else { bad(format!("{text:?} is no law: {FORMS}")) }
    }

    fn is_proper(&self) -> bool {
        match *self {
            Law::Gpareto { scale, shape, .. } | Law::Gev { scale, shape, .. } => {
                scale > 0.0 && scale.is_finite() && shape.is_finite()
            }
            Law::Lognormal { median, sigma } => median > 0.0 && sigma >= 0.0,
            Law::Span(_) | Law::Weighted(_) => true,
        }
    }

    /// The largest number that is drawn, where a law without an upper end is cut at `cut`.
    pub fn most(&self, cut: u32) -> u32 {
        match self {
            Law::Span(span) => span.high,
            Law::Weighted(laws) => laws.iter().map(|(law, _)| law.most(cut)).max().unwrap_or(0),
            _ => cut,
        }
    }

    /// The smallest that can be drawn.
    pub fn least(&self) -> u32 {
        match self {
            Law::Span(span) => span.low,
            Law::Weighted(laws) => laws.iter().map(|(law, _)| law.least()).min().unwrap_or(0),
            Law::Gpareto { location, .. } => location.max(0.0).round() as u32,
            Law::Gev { .. } | Law::Lognormal { .. } => 0,
        }
    }

    /// The number at a hash; laws without an upper end are cut at `cut`.
    pub fn draw(&self, hash: u64, cut: u32) -> u32 {
        match self {
            Law::Span(Span { low, high }) => {
                let width = u64::from(high - low) + 1;
                low + (hash % width) as u32
            }
            Law::Weighted(laws) => {
                let whole: f64 = laws.iter().map(|(_, weight)| weight).sum();
                let mut left = unit(hash) * whole;
                let chosen = laws.iter().find(|(_, weight)| {
                    left -= weight;
                    left < 0.0
                });
                let (law, _) = chosen.or(laws.last()).expect("a weighted law has entries");
                law.draw(mix(hash), cut)
            }
            Law::Lognormal { median, sigma } => rounded(median * (sigma * normal(hash)).exp(), cut),
            _ => rounded(self.quantile(unit(hash)), cut),
        }
    }

    /// x with P(X ≤ x) = u, 0 < u < 1, of a law with a closed form; not rounded and not cut.
    fn quantile(&self, u: f64) -> f64 {
        let tail = |base: f64, shape: f64| {
            if shape == 0.0 { -base.ln() } else { (base.powf(-shape) - 1.0) / shape }
        };
        match *self {
            Law::Gpareto { location, scale, shape } => location + scale * tail(1.0 - u, shape),
            Law::Gev { location, scale, shape } => location + scale * tail(-u.ln(), shape),
            _ => unreachable!("drawn without a quantile"),
        }
    }
}

fn rounded(x: f64, cut: u32) -> u32 {
    x.round().clamp(0.0, f64::from(cut)) as u32
}

/// A hash as a standard normal number (Box and Muller, 1958).
fn normal(hash: u64) -> f64 {
    let angle = std::f64::consts::TAU * unit(mix(hash));
    (-2.0 * unit(hash).ln()).sqrt() * angle.cos()
}

/// A hash as a number above 0 and below 1.
fn unit(hash: u64) -> f64 {
    ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn span(text: &str, unit: fn(&str) -> Option<u32>) -> Result<Span, WorkloadError> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (unit(low.trim()), unit(high.trim())) {
        (Some(low), Some(high)) if low <= high => Ok(Span { low, high }),
        _ => bad(format!("{text:?} is no range: {FORMS}")),
    }
}

/// A whole number of bytes; `k` and `m`, also as `kB` and `KiB`, are the binary 1024 and 1024².
pub fn bytes(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let short = ["ib", "b"].iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    let short = if short.ends_with(['k', 'm']) { short } else { &lower };
    suffixed(short, &[("k", 1 << 10), ("m", 1 << 20)])
}

/// A whole number of seconds; `s`, `m`, `h` and `d` are what they are on a clock.
pub fn seconds(text: &str) -> Option<u32> {
    suffixed(text, &[("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)])
}

fn suffixed(text: &str, factors: &[(&str, u32)]) -> Option<u32> {
    let found =
        factors.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    number.parse::<u32>().ok()?.checked_mul(factor)
}
