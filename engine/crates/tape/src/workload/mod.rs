//! The user's request: keys, values, operations and schedule, parsed from short texts.

mod error;
mod integer_distribution;
mod key_distribution;
mod key_sampler;
mod operation_order;
mod recency;
mod schedule;

pub use error::WorkloadError;
pub(crate) use error::invalid;
pub use integer_distribution::{IntegerDistribution, IntegerRange, bytes, seconds};
pub(crate) use integer_distribution::{MAX_EXPTIME_S, MAX_SIZE};
pub(crate) use key_distribution::part_of;
pub use key_distribution::{KeyDistribution, KeyPart};
pub(crate) use key_sampler::KeySampler;
pub use operation_order::{MixEntry, Order, SequenceStep, parse_mix, parse_sequence};
pub use recency::{Distances, Recency};
pub use schedule::{Arrivals, Schedule, Think};

use crate::format::{MAX_KEY_BYTES, Verb};

/// The shape of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyShape {
    /// Keys with a length from a distribution.
    Length(IntegerDistribution),
    /// A pattern with `{index}`, `{index:08}` or `{hex:10}`.
    Pattern(String),
    /// These keys.
    Names(Vec<String>),
}

/// A workload: which operations on which keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub keys: u32,
    pub distribution: KeyDistribution,
    pub shape: KeyShape,
    /// The value sizes in bytes: a function of the key.
    pub size: IntegerDistribution,
    /// Each write of a key has another length than the write before, within the range of `size`: the length of a value
    /// then shows which write it comes from.
    pub vary_lengths: bool,
    /// The share of the values that compression can remove, 0 to 1.
    pub compressibility: f64,
    pub mix: Vec<MixEntry>,
    /// Tapes of one seed with other draws have the same keys, sizes and popularity of keys, and other operations.
    pub draws: u64,
    pub order: Order,
    /// The number of counters: the last keys.
    pub counters: u32,
    /// The number of keys in an mget or mset.
    pub run: u16,
    /// The share of the keys that is stored before the measurement, 0 to 1.
    pub prefill: f64,
    /// The share of reads that hit, 0 to 1: these use keys that the prefill stores, the others use keys
    /// that are never stored. `None`: reads use all keys.
    pub hit_ratio: Option<f64>,
    /// The expiry times in seconds: a function of the key.
    pub exptime_s: IntegerDistribution,
}

/// Nine reads per write on 10,000 equally likely keys, with values of 100 bytes.
impl Default for Workload {
    fn default() -> Workload {
        Workload {
            keys: 10_000,
            distribution: KeyDistribution::Uniform,
            shape: KeyShape::Length(IntegerDistribution::fixed(20)),
            size: IntegerDistribution::fixed(100),
            vary_lengths: false,
            compressibility: 0.0,
            mix: parse_mix("get=9,set=1").expect("a mix"),
            draws: 0,
            order: Order::Mixed,
            counters: 0,
            run: 10,
            prefill: 1.0,
            hit_ratio: None,
            exptime_s: IntegerDistribution::fixed(0),
        }
    }
}

impl Workload {
    /// Check the workload. An error says what would be possible.
    pub fn check(&self) -> Result<(), WorkloadError> {
        if self.keys == 0 {
            return invalid("--keys 0: at least one key is needed");
        }
        if !(0.0..=1.0).contains(&self.compressibility) {
            return invalid("--compressibility must be between 0 and 1");
        }
        if self.hit_ratio.is_some_and(|ratio| !(0.0..=1.0).contains(&ratio)) {
            return invalid("--hit-ratio must be between 0 and 1");
        }
        if !(0.0..=1.0).contains(&self.prefill) {
            return invalid("--prefill must be between 0 and 1");
        }
        if self.run == 0 {
            return invalid("--run 0: an mget or mset has at least one key");
        }
        if self.mix.is_empty() {
            return invalid("--mix names no operation");
        }
        self.check_counters()?;
        self.check_hit_ratio()?;
        self.check_lengths()?;
        self.check_parts()?;
        self.check_steps()?;
        if let KeyShape::Length(IntegerDistribution::Range(span)) = &self.shape
            && (span.low == 0 || span.high as usize > MAX_KEY_BYTES)
        {
            return invalid(format!("--key-length: 1 to {MAX_KEY_BYTES} characters"));
        }
        if let KeyShape::Names(names) = &self.shape
            && names.len() != self.keys as usize
        {
            return invalid(format!("--key-names: {} names for {} keys", names.len(), self.keys));
        }
        Ok(())
    }

    /// The kinds of operations on a tape of this workload.
    pub fn kinds(&self) -> Vec<MixEntry> {
        match &self.order {
            Order::Sequence { steps, .. } => steps.iter().map(|step| step.kind).collect(),
            _ => self.mix.clone(),
        }
    }

    pub fn has_runs(&self) -> bool {
        self.kinds().iter().any(|kind| kind.verb.has_run())
    }

    /// The maximum number of keys in one operation.
    pub fn max_run(&self) -> u32 {
        let steps = match &self.order {
            Order::Sequence { steps, .. } => &steps[..],
            _ => &[],
        };
        let named = steps.iter().filter_map(|step| step.keys).map(|(first, last)| last - first + 1);
        named.chain([u32::from(self.run)]).max().unwrap_or(1)
    }

    /// The number of keys that the prefill stores, from the first key on.
    pub fn prefill_count(&self) -> u32 {
        (f64::from(self.keys) * self.prefill).round() as u32
    }

    /// The longest expiry time, which the prefill uses. 0 means never, and is the longest of all.
    pub fn max_exptime_s(&self) -> u32 {
        if self.exptime_s.min_value() == 0 { 0 } else { self.exptime_s.max_value(MAX_EXPTIME_S) }
    }

    /// The size of the largest value in bytes.
    pub fn max_size(&self) -> u32 {
        self.size.max_value(MAX_SIZE)
    }

    /// The range of the lengths of writes, if these vary.
    pub(crate) fn varying_lengths(&self) -> Option<IntegerRange> {
        match &self.size {
            IntegerDistribution::Range(range) if self.vary_lengths => Some(*range),
            _ => None,
        }
    }

    /// The first key of each part of the keys.
    pub(crate) fn first_keys(&self) -> Vec<u32> {
        self.distribution.first_keys(self.keys - self.counters)
    }

    fn check_parts(&self) -> Result<(), WorkloadError> {
        let parts = match &self.distribution {
            KeyDistribution::Parts(parts) => parts.len(),
            _ => 1,
        };
        let length = match &self.shape {
            KeyShape::Length(length) => length.parts(),
            _ => None,
        };
        for (option, found) in [
            ("--size", self.size.parts()),
            ("--exptime", self.exptime_s.parts()),
            ("--key-length", length),
        ] {
            if let Some(found) = found.filter(|found| *found != parts) {
                return invalid(format!(
                    "{option} is for {found} parts of keys, but --distribution has {parts}: write one for each part, or \
                     one for all"
                ));
            }
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), WorkloadError> {
        if !self.vary_lengths {
            return Ok(());
        }
        if self.varying_lengths().is_none_or(|range| range.low == range.high) {
            return invalid("--vary-lengths needs a range of sizes: use --size LOW..HIGH");
        }
        if self.kinds().iter().any(|kind| kind.verb == Verb::Mset) {
            return invalid(
                "--vary-lengths: an mset writes each key at the key's own length always",
            );
        }
        Ok(())
    }

    fn check_hit_ratio(&self) -> Result<(), WorkloadError> {
        let Some(ratio) = self.hit_ratio else { return Ok(()) };
        let stored = self.prefill_count();
        if (ratio > 0.0 && stored == 0) || (ratio < 1.0 && stored == self.keys) {
            return invalid(format!(
                "--hit-ratio {ratio}: the prefill stores {stored} of {} keys, but some must be \
                 stored and some not: use --prefill between 0 and 1, and more --keys",
                self.keys
            ));
        }
        let brings_keys = matches!(
            self.distribution,
            KeyDistribution::Latest(_)
                | KeyDistribution::Recency { .. }
                | KeyDistribution::Parts(_)
        );
        if self.counters > 0 || brings_keys {
            return invalid(
                "--hit-ratio cannot be combined with --counters, or the distributions latest and recency, or parts",
            );
        }
        let changes = |verb| matches!(verb, Verb::Delete | Verb::Fetch | Verb::Flush);
        if let Some(kind) = self.kinds().iter().find(|kind| changes(kind.verb)) {
            return invalid(format!(
                "--hit-ratio: {} operations would change it",
                kind.verb.name()
            ));
        }
        Ok(())
    }

    fn check_counters(&self) -> Result<(), WorkloadError> {
        if self.counters > self.keys {
            return invalid(format!("--counters {}: there are {} keys", self.counters, self.keys));
        }
        let (counting, other): (Vec<MixEntry>, Vec<MixEntry>) =
            self.kinds().into_iter().partition(|kind| kind.verb.counts());
        if !counting.is_empty() && self.counters == 0 {
            return invalid("incr and decr need --counters");
        }
        let keyed = other.iter().any(|kind| !kind.verb.is_keyless());
        if keyed && self.counters == self.keys {
            return invalid("--counters: no key is left for the other operations");
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
                return invalid(format!("--sequence {name}@{last}: there are {room} {what}"));
            }
        }
        Ok(())
    }
}
