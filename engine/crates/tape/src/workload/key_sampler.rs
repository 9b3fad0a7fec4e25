//! Keys drawn from a distribution.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution as _, StandardNormal, Zipf};

use super::error::{WorkloadError, invalid};
use super::key_distribution::{KeyDistribution, KeyPart};
use super::recency::{Distances, Recency};
use crate::random::{RandomStream, random_stream};

/// Draws keys from 0..count.
pub enum KeySampler {
    Sequential {
        next: u32,
        count: u32,
    },
    Constant,
    Uniform {
        count: u32,
    },
    /// Rank 1 is the most likely. Ranks are shuffled over the keys.
    Zipf {
        distribution: Zipf<f64>,
        key_of_rank: Vec<u32>,
    },
    YcsbZipfian {
        count: u32,
    },
    Hotspot {
        hot: u32,
        operations: f64,
        key_of_rank: Vec<u32>,
    },
    /// The newest of the keys that exist. Writes move it on, in a ring.
    Latest {
        exponent: f64,
        newest: u32,
        exist: u32,
        count: u32,
    },
    Gaussian {
        deviation: f64,
        count: u32,
    },
    Recency {
        reads: Distances,
        writes: Distances,
        order: Recency,
        count: u32,
    },
    Parts(Vec<PartSampler>),
}

/// Draws keys of a part.
pub struct PartSampler {
    first: u32,
    /// The shares of this part and of those before.
    reads: f64,
    writes: f64,
    sampler: KeySampler,
}

impl KeySampler {
    /// A sampler of `count` keys, of which the prefill stores the first `stored`.
    pub fn new(
        distribution: &KeyDistribution,
        count: u32,
        stored: u32,
        seed: u64,
    ) -> Result<KeySampler, WorkloadError> {
        Ok(match *distribution {
            KeyDistribution::Sequential => KeySampler::Sequential { next: 0, count },
            KeyDistribution::Constant => KeySampler::Constant,
            KeyDistribution::Uniform => KeySampler::Uniform { count },
            KeyDistribution::Zipf(exponent) => {
                let Ok(distribution) = Zipf::new(f64::from(count), exponent) else {
                    return invalid(format!("zipf:{exponent} cannot be drawn from"));
                };
                KeySampler::Zipf { distribution, key_of_rank: shuffled_keys(count, seed) }
            }
            KeyDistribution::YcsbZipfian => KeySampler::YcsbZipfian { count },
            KeyDistribution::Hotspot { keys, operations } => {
                let hot = ((f64::from(count) * keys).round() as u32).clamp(1, count);
                // If no cold key is left, all keys are hot.
                let operations = if hot == count { 1.0 } else { operations };
                KeySampler::Hotspot { hot, operations, key_of_rank: shuffled_keys(count, seed) }
            }
            KeyDistribution::Latest(exponent) => {
                let exist = stored.min(count);
                let newest = if exist == 0 { count - 1 } else { exist - 1 };
                KeySampler::Latest { exponent, newest, exist, count }
            }
            KeyDistribution::Gaussian(deviation) => {
                KeySampler::Gaussian { deviation: deviation * f64::from(count), count }
            }
            KeyDistribution::Recency { ref reads, ref writes } => {
                let (reads, writes) = (reads.clone(), writes.clone());
                let mut order = Recency::new(count);
                for key in 0..stored.min(count) {
                    order.touch(key);
                }
                KeySampler::Recency { reads, writes, order, count }
            }
            KeyDistribution::Parts(ref parts) => {
                let first_keys = distribution.first_keys(count);
                KeySampler::Parts(part_samplers(parts, &first_keys, count, stored, seed)?)
            }
        })
    }

    /// Draw a key to read or, if `writes`, to store.
    pub fn key(&mut self, writes: bool, rng: &mut ChaCha8Rng) -> u32 {
        match self {
            KeySampler::Constant => 0,
            KeySampler::Uniform { count } => rng.random_range(0..*count),
            KeySampler::Sequential { next, count } => {
                let key = *next;
                *next = if key + 1 == *count { 0 } else { key + 1 };
                key
            }
            KeySampler::Zipf { distribution, key_of_rank } => {
                let rank = distribution.sample(rng) as usize;
                key_of_rank[rank.clamp(1, key_of_rank.len()) - 1]
            }
            KeySampler::YcsbZipfian { count } => {
                (fnv1a(ycsb_zipfian(rng.random::<f64>())) % u64::from(*count)) as u32
            }
            KeySampler::Hotspot { hot, operations, key_of_rank } => {
                let count = key_of_rank.len() as u32;
                let ranks = if rng.random_bool(*operations) { 0..*hot } else { *hot..count };
                key_of_rank[rng.random_range(ranks) as usize]
            }
            KeySampler::Latest { newest, exist, count, .. } if writes => {
                *newest = if *newest + 1 == *count { 0 } else { *newest + 1 };
                *exist = (*exist + 1).min(*count);
                *newest
            }
            KeySampler::Latest { exponent, newest, exist, count } => {
                let distribution = Zipf::new(f64::from((*exist).max(1)), *exponent)
                    .expect("an exponent of 0 or more over at least one rank");
                let age = (distribution.sample(rng) as u32).clamp(1, (*exist).max(1)) - 1;
                (*newest + (*count - age)) % *count
            }
            KeySampler::Gaussian { deviation, count } => gaussian(*deviation, *count, rng),
            KeySampler::Recency { reads, writes: stores, order, count } => {
                (if writes { stores } else { reads }).key(order, *count, rng)
            }
            KeySampler::Parts(parts) => {
                let share = |part: &PartSampler| if writes { part.writes } else { part.reads };
                let drawn = rng.random::<f64>() * parts.last().map_or(0.0, share);
                let chosen = parts.iter().position(|part| drawn < share(part)).unwrap_or(0);
                let PartSampler { first, sampler, .. } = &mut parts[chosen];
                *first + sampler.key(writes, rng)
            }
        }
    }

    /// The key of a rank, the most likely first. If all are equal: the order of the table.
    pub fn key_of_rank(&self, rank: u32) -> u32 {
        match self {
            KeySampler::Zipf { key_of_rank, .. } | KeySampler::Hotspot { key_of_rank, .. } => {
                key_of_rank[rank as usize]
            }
            KeySampler::Latest { newest, count, .. } => (newest + (count - rank)) % count,
            KeySampler::Gaussian { count, .. } => {
                // From the middle outwards, alternating between both sides.
                let middle = (count - 1) / 2;
                let step = rank.div_ceil(2);
                if rank % 2 == 1 { middle + step } else { middle - step }
            }
            _ => rank,
        }
    }
}

/// The samplers of parts that begin at these keys.
fn part_samplers(
    parts: &[KeyPart],
    first_keys: &[u32],
    count: u32,
    stored: u32,
    seed: u64,
) -> Result<Vec<PartSampler>, WorkloadError> {
    let (mut reads, mut writes) = (0.0, 0.0);
    let mut samplers = Vec::with_capacity(parts.len());
    for (number, (part, first)) in parts.iter().zip(first_keys).enumerate() {
        let end = first_keys.get(number + 1).copied().unwrap_or(count);
        if end == *first {
            return invalid(format!(
                "--distribution: part {} has none of {count} keys",
                number + 1
            ));
        }
        reads += part.reads;
        writes += part.writes;
        let stored = stored.saturating_sub(*first).min(end - first);
        let sampler = KeySampler::new(&part.distribution, end - first, stored, seed)?;
        samplers.push(PartSampler { first: *first, reads, writes, sampler });
    }
    if reads <= 0.0 || writes <= 0.0 {
        return invalid("--distribution: no part has operations");
    }
    Ok(samplers)
}

fn shuffled_keys(count: u32, seed: u64) -> Vec<u32> {
    let mut key_of_rank: Vec<u32> = (0..count).collect();
    key_of_rank.shuffle(&mut random_stream(seed, RandomStream::Ranks));
    key_of_rank
}

/// Normal around the middle of 0..count. Draws outside are repeated.
fn gaussian(deviation: f64, count: u32, rng: &mut ChaCha8Rng) -> u32 {
    let middle = f64::from(count - 1) / 2.0;
    loop {
        let z: f64 = StandardNormal.sample(rng);
        let key = (middle + deviation * z).round();
        if key >= 0.0 && key < f64::from(count) {
            return key as u32;
        }
    }
}

/// YCSB's zipfian number for a uniform one: exponent 0.99 over its fixed 10¹⁰ items, by the
/// approximation of Gray et al., SIGMOD 1994, with the constants of YCSB's source.
fn ycsb_zipfian(u: f64) -> u64 {
    const ITEMS: f64 = 10_000_000_000.0;
    const THETA: f64 = 0.99;
    const ZETA: f64 = 26.469_028_201_783_02;
    let two = 1.0 + 0.5_f64.powf(THETA);
    let eta = (1.0 - (2.0 / ITEMS).powf(1.0 - THETA)) / (1.0 - two / ZETA);
    let scaled = u * ZETA;
    if scaled < 1.0 {
        0
    } else if scaled < two {
        1
    } else {
        (ITEMS * (eta * u - eta + 1.0).powf(1.0 / (1.0 - THETA))) as u64
    }
}

/// The 64-bit FNV-1a hash of a number's bytes, lowest byte first: YCSB shuffles its items with it.
fn fnv1a(number: u64) -> u64 {
    let hash = number.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // YCSB takes the absolute value of the signed number.
    (hash as i64).unsigned_abs()
}
