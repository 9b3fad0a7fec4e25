//! Keys that no reader can find: a keyed hash, whose random key is never stored.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// The mark between the namespace of a key and the rest, as in memcached's own statistics by prefix.
const DELIMITER: u8 = b':';
/// Further namespaces share one name.
const MOST_NAMESPACES: usize = 1 << 16;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Renames keys. Two of them give different names to a key.
#[derive(Default)]
pub struct Anonymiser {
    /// SipHash with 128 random bits.
    hash: RandomState,
    namespaces: HashMap<Vec<u8>, usize>,
}

impl Anonymiser {
    /// Another key of 11 characters, behind the name of its namespace: `b:q8fZ…`. Equal keys become equal ones.
    pub fn renamed(&mut self, key: &[u8]) -> String {
        let mut name = String::new();
        if let Some(end) = key.iter().position(|byte| *byte == DELIMITER) {
            name = self.namespace(&key[..end]);
            name.push(':');
        }
        let hash = self.hash.hash_one(key);
        let digit = |at: u32| char::from(DIGITS[(hash >> (6 * at)) as usize & 63]);
        name.extend((0..11).map(digit));
        name
    }

    fn namespace(&mut self, namespace: &[u8]) -> String {
        let next = self.namespaces.len();
        match self.namespaces.get(namespace) {
            Some(number) => letters(*number),
            None if next == MOST_NAMESPACES => "other".to_owned(),
            None => {
                self.namespaces.insert(namespace.to_vec(), next);
                letters(next)
            }
        }
    }
}

/// A size rounded up: up to 4 exactly, then four sizes for each doubling.
pub(crate) fn rounded_size(bytes: u32) -> u32 {
    let step = 1 << (u32::BITS - bytes.saturating_sub(1).leading_zeros()).saturating_sub(3);
    bytes.div_ceil(step).saturating_mul(step)
}

/// a … z, ba, bb, …
fn letters(mut number: usize) -> String {
    let mut letters = Vec::new();
    loop {
        letters.push(b'a' + (number % 26) as u8);
        number /= 26;
        if number == 0 {
            break;
        }
    }
    letters.iter().rev().map(|letter| char::from(*letter)).collect()
}

/// Chooses a share of the keys, with all their requests, by another hash than that which renames.
pub(crate) struct Sampler {
    hash: RandomState,
    one_of: u32,
}

impl Sampler {
    pub(crate) fn new(one_of: u32) -> Sampler {
        Sampler { hash: RandomState::new(), one_of }
    }

    pub(crate) fn takes(&self, key: &[u8]) -> bool {
        self.one_of == 1 || self.hash.hash_one(key).is_multiple_of(u64::from(self.one_of))
    }
}
