//! The expiry times that writes give.

use std::collections::HashMap;

use serde::Serialize;

use crate::sizes::{SizeDistribution, Sizes};

/// Further values are only in the distribution: programs that compute expiry times have no common ones.
const MOST_VALUES: usize = 1 << 14;
const SHOWN: usize = 12;

/// The expiry times of writes, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TtlStatistics {
    pub writes: u64,
    /// Writes of items that do not expire.
    pub without: u64,
    /// Of those that expire.
    pub seconds: SizeDistribution,
    /// The most frequent ones.
    pub common: Vec<TtlShare>,
}

/// An expiry time, and its part of all writes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TtlShare {
    pub ttl_s: u32,
    pub share: f64,
}

#[derive(Default)]
pub(crate) struct Ttls {
    writes: u64,
    without: u64,
    seconds: Sizes,
    values: HashMap<u32, u64>,
}

impl Ttls {
    pub fn add(&mut self, ttl_s: u32, count: u64) {
        self.writes += count;
        if ttl_s == 0 {
            self.without += count;
            return;
        }
        self.seconds.add(ttl_s, count);
        let has_place = self.values.len() < MOST_VALUES;
        match self.values.get_mut(&ttl_s) {
            Some(known) => *known += count,
            None if has_place => drop(self.values.insert(ttl_s, count)),
            None => {}
        }
    }

    pub fn statistics(&self) -> TtlStatistics {
        let mut common: Vec<_> =
            self.values.iter().map(|(ttl_s, count)| (*ttl_s, *count)).collect();
        common.sort_unstable_by_key(|(ttl_s, count)| (std::cmp::Reverse(*count), *ttl_s));
        common.truncate(SHOWN);
        let share = |(ttl_s, count): (u32, u64)| TtlShare {
            ttl_s,
            share: count as f64 / self.writes as f64,
        };
        TtlStatistics {
            writes: self.writes,
            without: self.without,
            seconds: self.seconds.distribution(),
            common: common.into_iter().map(share).collect(),
        }
    }
}
