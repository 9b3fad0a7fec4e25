//! What is wanted of a tape: keys, values, mix and schedule, read from short texts.

use std::fmt;
use std::str::FromStr;

use crate::format::{KEY_BYTES_MAX, Verb};
pub use crate::order::{Kind, Order, Step, parse_mix, parse_sequence};

/// A workload that cannot be made, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadError(pub String);

impl fmt::Display for WorkloadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for WorkloadError {}

pub(crate) fn bad<T>(text: impl Into<String>) -> Result<T, WorkloadError> {
    Err(WorkloadError(text.into()))
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    Sequential,
    Uniform,
    Constant,
    /// True Zipf over ranks 1..=keys with this exponent.
    Zipf(f64),
}

impl FromStr for Distribution {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("sequential", "") => Ok(Distribution::Sequential),
            ("uniform", "") => Ok(Distribution::Uniform),
            ("constant", "") => Ok(Distribution::Constant),
            ("zipf", exponent) => match exponent.parse::<f64>() {
                Ok(s) if s.is_finite() && s >= 0.0 => Ok(Distribution::Zipf(s)),
                _ => bad(format!("zipf:{exponent}: write an exponent of 0 or more: zipf:0.99")),
            },
            _ => bad(format!(
                "no key distribution {text:?}: sequential, uniform, constant or zipf:EXPONENT"
            )),
        }
    }
}

/// A range of whole numbers, both ends included: `100`, `100..1000` or `1k..64k`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub low: u32,
    pub high: u32,
}

impl FromStr for Span {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        match (binary(low), binary(high)) {
            (Some(low), Some(high)) if low <= high => Ok(Span { low, high }),
            _ => bad(format!("{text:?} is no range: write 100, 100..1000 or 1k..64k")),
        }
    }
}

/// A whole number; `k` and `m` are the binary 1024 and 1024².
fn binary(text: &str) -> Option<u32> {
    let factors = [(['k', 'K'], 1 << 10), (['m', 'M'], 1 << 20)];
    let suffixed =
        factors.into_iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    let (number, factor) = suffixed.unwrap_or((text, 1_u32));
    number.parse::<u32>().ok()?.checked_mul(factor)
}

/// What keys look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyShape {
    /// So many characters, a function of the key.
    Length(Span),
    /// A text with `{index}`, `{index:08}` or `{hex:10}` in it.
    Pattern(String),
    /// Each key as it is.
    Names(Vec<String>),
}

/// A workload: what is done to which keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub keys: u32,
    pub distribution: Distribution,
    pub shape: KeyShape,
    /// Value sizes in bytes, a function of the key.
    pub size: Span,
    /// The part of the values that compression can remove, 0 to 1.
    pub compressibility: f64,
    pub mix: Vec<Kind>,
    pub order: Order,
    /// So many of the keys, the last ones, are counters.
    pub counters: u32,
    /// Keys in each mget or mset.
    pub run: u16,
    /// The part of the keys that is stored before anything is timed, 0 to 1.
    pub prefill: f64,
    pub exptime_s: u32,
}

/// When operations are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// As soon as the one before is done; so many records.
    Closed { ops: u64 },
    /// At equal gaps, `rate` per second.
    Uniform { rate: f64, duration_ns: u64 },
    /// Poisson arrivals, `rate` per second on average.
    Poisson { rate: f64, duration_ns: u64 },
}

/// More records than any tape has room for.
const OPS_MAX: f64 = 4e9;

impl Workload {
    /// Refuse what cannot be made, and say what could.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.keys == 0 {
            return bad("--keys 0: at least one key is needed");
        }
        if !(0.0..=1.0).contains(&self.compressibility) {
            return bad("--compressibility must be between 0 and 1");
        }
        if !(0.0..=1.0).contains(&self.prefill) {
            return bad("--prefill must be between 0 and 1");
        }
        if self.run == 0 {
            return bad("--run 0: an mget or mset has at least one key");
        }
        if self.mix.is_empty() {
            return bad("--mix names no operation");
        }
        self.check_counters()?;
        self.check_steps()?;
        if let KeyShape::Length(span) = &self.shape
            && (span.low == 0 || span.high as usize > KEY_BYTES_MAX)
        {
            return bad(format!("--key-length: 1 to {KEY_BYTES_MAX} characters"));
        }
        if let KeyShape::Names(names) = &self.shape
            && names.len() != self.keys as usize
        {
            return bad(format!("--key-names: {} names for {} keys", names.len(), self.keys));
        }
        Ok(())
    }

    /// The kinds of operation that a tape of it holds.
    pub fn kinds(&self) -> Vec<Kind> {
        match &self.order {
            Order::Sequence { steps, .. } => steps.iter().map(|step| step.kind).collect(),
            _ => self.mix.clone(),
        }
    }

    pub fn has_runs(&self) -> bool {
        self.kinds().iter().any(|kind| kind.verb.has_run())
    }

    /// The most keys that one operation names.
    pub fn longest_run(&self) -> u32 {
        let steps = match &self.order {
            Order::Sequence { steps, .. } => &steps[..],
            _ => &[],
        };
        let named = steps.iter().filter_map(|step| step.keys).map(|(first, last)| last - first + 1);
        named.chain([u32::from(self.run)]).max().unwrap_or(1)
    }

    fn check_counters(&self) -> Result<(), WorkloadError> {
        if self.counters > self.keys {
            return bad(format!("--counters {}: there are {} keys", self.counters, self.keys));
        }
        let (counting, other): (Vec<Kind>, Vec<Kind>) =
            self.kinds().into_iter().partition(|kind| kind.verb.counts());
        if !counting.is_empty() && self.counters == 0 {
            return bad("incr and decr need --counters");
        }
        let keyed = other.iter().any(|kind| kind.verb != Verb::Version);
        if keyed && self.counters == self.keys {
            return bad("--counters: no key is left for the other operations");
        }
        Ok(())
    }

    fn check_steps(&self) -> Result<(), WorkloadError> {
        let Order::Sequence { steps, .. } = &self.order else { return Ok(()) };
        for step in steps {
            let counts = step.kind.verb.counts();
            let room = if counts { self.counters } else { self.keys - self.counters };
            if let Some((_, last)) = step.keys
                && last >= room
            {
                let what = if counts { "counters" } else { "keys" };
                let name = step.kind.verb.kind(step.kind.noreply);
                return bad(format!("--sequence {name}@{last}: there are {room} {what}"));
            }
        }
        Ok(())
    }
}

impl Schedule {
    pub fn check(&self) -> Result<(), WorkloadError> {
        match *self {
            Schedule::Closed { ops } => {
                if ops == 0 || ops as f64 > OPS_MAX {
                    return bad(format!("--ops {ops}: 1 to {OPS_MAX:e}"));
                }
            }
            Schedule::Uniform { rate, duration_ns } | Schedule::Poisson { rate, duration_ns } => {
                if !(rate.is_finite() && rate > 0.0) {
                    return bad(format!("--rate {rate}: it must be above 0"));
                }
                let ops = rate * duration_ns as f64 / 1e9;
                if !(1.0..=OPS_MAX).contains(&ops) {
                    return bad(format!("--rate × --duration makes {ops} operations: 1 to 4e9"));
                }
            }
        }
        Ok(())
    }
}
