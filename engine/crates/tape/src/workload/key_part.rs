//! Parts of the keys, each with its own distribution.

use std::str::FromStr;

use super::error::{WorkloadError, invalid};
use super::key_distribution::KeyDistribution;

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
