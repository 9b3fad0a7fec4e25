//! Random numbers: streams to draw from, and hashes of a number.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Each purpose has its own stream, so that a change of one leaves the others unchanged.
#[derive(Clone, Copy)]
pub enum RandomStream {
    Pool = 1,
    Ranks,
    OperationSampler,
    Times,
}

pub fn random_stream(seed: u64, purpose: RandomStream) -> ChaCha8Rng {
    numbered_stream(seed, purpose, 0)
}

/// One of several streams for the same purpose.
pub fn numbered_stream(seed: u64, purpose: RandomStream, number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(purpose as u64 | number << 8);
    rng
}

/// The finaliser of SplitMix64: a bijection on 64 bits without a visible pattern.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A bijection on numbers of `bits` bits, made of reversible steps: odd multiplications and xor-shifts.
pub fn scramble(index: u64, seed: u64, bits: u32) -> u64 {
    let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
    let half = (bits / 2).max(1);
    let mut x = index & mask;
    for round in 0..3 {
        x = x.wrapping_mul(mix(seed ^ round) | 1) & mask;
        x ^= x >> half;
        x = x.wrapping_add(mix(seed.wrapping_add(round))) & mask;
    }
    x
}
