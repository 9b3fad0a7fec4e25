//! How often each key is used: the distributions, of all keys or of parts of them.

use std::str::FromStr;

use super::error::{WorkloadError, invalid};
use super::recency::Distances;

/// The distribution of keys.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyDistribution {
    Sequential,
    Uniform,
    Constant,
    /// A true Zipf distribution over the ranks 1..=keys, with this exponent.
    Zipf(f64),
    /// YCSB's zipfian: its ScrambledZipfianGenerator. The hottest key has 3.78 % of the
    /// operations for any number of keys.
    YcsbZipfian,
    /// This share of the keys has that share of the operations. Within each part all keys are equal.
    Hotspot {
        keys: f64,
        operations: f64,
    },
    /// Zipf over the age of keys: the newest key is the most likely one, and writes add new keys.
    Latest(f64),
    /// Normal around the middle key, cut at the ends. The deviation is a share of the number of keys.
    Gaussian(f64),
    /// By the number of other keys used since the last use of a key. Unused keys follow in their order.
    Recency {
        reads: Distances,
        writes: Distances,
    },
    /// Parts of the keys, each with its own distribution, in the order of the keys.
    Parts(Vec<KeyPart>),
}

/// A wider distribution is nearly uniform, and who writes 100 means a number of keys.
const MAX_DEVIATION: f64 = 1.0;

const SYNTAX: &str = "sequential, uniform, constant, zipf:EXPONENT, ycsb-zipfian, \
                     hotspot:KEYS:OPERATIONS, latest:EXPONENT, gaussian:DEVIATION, recency:NEW:DISTANCES, or parts \
                     KEYS:OPERATIONS:DISTRIBUTION;…";

impl FromStr for KeyDistribution {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if text.contains(';') {
            let parts = text.split(';').map(str::parse);
            return Ok(KeyDistribution::Parts(parts.collect::<Result<_, _>>()?));
        }
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if name == "recency" {
            let (reads, writes) = rest.split_once('/').unwrap_or((rest, rest));
            return Ok(KeyDistribution::Recency { reads: reads.parse()?, writes: writes.parse()? });
        }
        let numbers: Option<Vec<f64>> = if rest.is_empty() {
            Some(Vec::new())
        } else {
            rest.split(':').map(|n| n.parse().ok().filter(|x: &f64| x.is_finite())).collect()
        };
        let share = |part: f64| part > 0.0 && part < 1.0;
        match (name, numbers.as_deref()) {
            ("sequential", Some([])) => Ok(KeyDistribution::Sequential),
            ("uniform", Some([])) => Ok(KeyDistribution::Uniform),
            ("constant", Some([])) => Ok(KeyDistribution::Constant),
            ("ycsb-zipfian", Some([])) => Ok(KeyDistribution::YcsbZipfian),
            ("zipf", Some([s])) if *s >= 0.0 => Ok(KeyDistribution::Zipf(*s)),
            ("zipf", _) => invalid(format!("{text}: write an exponent of 0 or more: zipf:0.99")),
            ("hotspot", Some([keys, operations])) if share(*keys) && share(*operations) => {
                Ok(KeyDistribution::Hotspot { keys: *keys, operations: *operations })
            }
            ("hotspot", _) => invalid(format!(
                "{text}: write the share of hot keys and their share of the operations: \
                 hotspot:0.2:0.8"
            )),
            ("latest", Some([])) => Ok(KeyDistribution::Latest(0.99)),
            ("latest", Some([s])) if *s >= 0.0 => Ok(KeyDistribution::Latest(*s)),
            ("gaussian", Some([])) => Ok(KeyDistribution::Gaussian(1.0 / 6.0)),
            ("gaussian", Some([sd])) if *sd > 0.0 && *sd <= MAX_DEVIATION => {
                Ok(KeyDistribution::Gaussian(*sd))
            }
            ("gaussian", Some([_])) => invalid(format!(
                "{text}: the deviation is a part of all keys, above 0 and at most {MAX_DEVIATION}, such as 0.1"
            )),
            _ => invalid(format!("unknown key distribution {text:?}: use {SYNTAX}")),
        }
    }
}

impl KeyDistribution {
    /// The first key of each part, of `count` keys.
    pub(crate) fn first_keys(&self, count: u32) -> Vec<u32> {
        let KeyDistribution::Parts(parts) = self else { return vec![0] };
        let all: f64 = parts.iter().map(|part| part.keys).sum();
        let before = parts.iter().scan(0.0, |sum, part| {
            let before = *sum;
            *sum += part.keys;
            Some(before)
        });
        before.map(|keys| (f64::from(count) * keys / all).round() as u32).collect()
    }
}

/// A part of the keys. Only the ratios of shares matter.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    pub keys: f64,
    /// Its share of the operations that read, and of those that store.
    pub reads: f64,
    pub writes: f64,
    pub distribution: KeyDistribution,
}

impl FromStr for KeyPart {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let share = |text: &str| text.parse().ok().filter(|x: &f64| *x >= 0.0 && x.is_finite());
        let fields: Vec<&str> = text.trim().splitn(3, ':').collect();
        if let [keys, operations, distribution] = fields[..] {
            let (reads, writes) = operations.split_once('/').unwrap_or((operations, operations));
            if let (Some(keys), Some(reads), Some(writes)) =
                (share(keys), share(reads), share(writes))
            {
                return Ok(KeyPart { keys, reads, writes, distribution: distribution.parse()? });
            }
        }
        invalid(format!(
            "{text:?} is no part of keys: write its shares of keys and operations and its distribution, behind a / the \
             share of writes if it differs: 0.2:0.8:zipf:0.99;0.8:0.2:sequential"
        ))
    }
}

/// The part that a key is in.
pub(crate) fn part_of(key: u32, first_keys: &[u32]) -> usize {
    first_keys.partition_point(|first| *first <= key).saturating_sub(1)
}
