//! Which slots of two buckets have a tag: what every search begins with. All are compared, whatever
//! is found: which of them it is, is what no processor foresees, and what it guesses wrongly costs more.

use std::sync::atomic::AtomicU64;

use crate::layout::BUCKET_SLOTS;
use crate::region::SEEN;
use crate::slot::TAG_SHIFT;

/// The words of a bucket: slots, then the overflow bucket that follows.
pub type Bucket = [AtomicU64; BUCKET_SLOTS + 1];

const TAG_BITS: u32 = u64::BITS - TAG_SHIFT;
/// The lowest bit of each of four tags in a word, and the highest.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (TAG_BITS - 1);
/// Three of them: a bucket's last word is no slot.
const THREE: u64 = u64::MAX >> TAG_BITS;

/// Places in two buckets where the tag is: all of these, and now and then one where it is not.
#[derive(Clone, Copy)]
pub struct Places(u64);

impl Places {
    /// Four tags are compared at once, those of four words in one.
    #[inline]
    pub fn of(one: &Bucket, two: &Bucket, tag: u64) -> Places {
        let tags = tag * LOWEST;
        let part = |words: &[AtomicU64]| {
            let four = words
                .iter()
                .rev()
                .fold(0, |four: u64, word| four << TAG_BITS | word.load(SEEN) >> TAG_SHIFT);
            below_one(four ^ tags)
        };
        // Of four words each: the place of a bit says which of the four, and whose.
        Places(
            part(&one[..4]) >> 3
                | (part(&one[4..BUCKET_SLOTS]) & THREE) >> 2
                | part(&two[..4]) >> 1
                | part(&two[4..BUCKET_SLOTS]) & THREE,
        )
    }
}

impl Iterator for Places {
    /// Whether it is in the second bucket, and where.
    type Item = (bool, usize);

    #[inline]
    fn next(&mut self) -> Option<(bool, usize)> {
        let bit = self.0.trailing_zeros();
        if bit == u64::BITS {
            return None;
        }
        self.0 &= self.0 - 1;
        // Bits 12 to 15 of each tag's sixteen are those of the four parts.
        let (part, which) = (bit % TAG_BITS - (TAG_BITS - 4), bit / TAG_BITS);
        Some((part >= 2, (part % 2 * 4 + which) as usize))
    }
}

/// The highest bit of each tag that is 0, and perhaps of others above one that is (A. Mycroft, 1987).
#[inline]
fn below_one(four: u64) -> u64 {
    four.wrapping_sub(LOWEST) & !four & HIGHEST
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words whose tags are few, so that some are the same.
    fn bucket() -> impl Strategy<Value = [u64; 8]> {
        let tag = prop_oneof![Just(0), Just(1), Just(0x7fff), Just(0x8000), Just(0xffff)];
        let word = (tag, any::<u64>()).prop_map(|(tag, rest): (u64, u64)| tag << 48 | rest >> 16);
        proptest::array::uniform8(word)
    }

    proptest! {
        #[test]
        fn no_slot_with_the_tag_is_overlooked(one in bucket(), two in bucket(), known in 0_usize..14) {
            let words: Vec<u64> = one.iter().chain(&two).copied().collect();
            let slots = (0..16).filter(|n| n % 8 < BUCKET_SLOTS);
            let tag = words[slots.clone().nth(known).expect("a slot")] >> 48;
            let atomic = |bucket: [u64; 8]| bucket.map(AtomicU64::new);
            let places = Places::of(&atomic(one), &atomic(two), tag);
            let found: Vec<usize> =
                places.map(|(second, place)| usize::from(second) * 8 + place).collect();
            let expected: Vec<usize> = slots.filter(|n| words[*n] >> 48 == tag).collect();
            prop_assert!(expected.iter().all(|n| found.contains(n)), "{expected:?} of {found:?}");
            // What is found besides lies behind one that is right, and differs in one bit.
            prop_assert!(found.iter().all(|n| n % 8 < BUCKET_SLOTS && words[*n] >> 48 ^ tag <= 1), "{found:?}");
        }
    }
}
