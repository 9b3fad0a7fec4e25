//! Which slots of two buckets have a given tag. Every search begins with this. All slots are compared,
//! even behind a match: a processor cannot predict which slot matches, and a wrong prediction costs more.

use std::sync::atomic::AtomicU64;

use crate::items::slot::TAG_SHIFT;
use crate::memory::atomics::SHARED;
use crate::memory::layout::BUCKET_SLOTS;

/// The words of a bucket: its slots, then the index of its overflow bucket.
pub type Bucket = [AtomicU64; BUCKET_SLOTS + 1];

const TAG_BITS: u32 = u64::BITS - TAG_SHIFT;
/// A word has four lanes, one for each of four tags: the lowest and the highest bit of each.
const LANE_LOW_BITS: u64 = 0x0001_0001_0001_0001;
const LANE_HIGH_BITS: u64 = LANE_LOW_BITS << (TAG_BITS - 1);
/// Three lanes: the last word of a bucket is no slot.
const SLOT_LANES: u64 = u64::MAX >> TAG_BITS;

/// The slots of two buckets that have the tag: all of them, and rarely one that does not have it.
#[derive(Clone, Copy)]
pub struct TagMatches(u64);

impl TagMatches {
    /// Compare the tags of four slots at once.
    #[inline]
    pub fn of(one: &Bucket, two: &Bucket, tag: u64) -> TagMatches {
        let tags = tag * LANE_LOW_BITS;
        let part = |words: &[AtomicU64]| {
            let four = words
                .iter()
                .rev()
                .fold(0, |four: u64, word| four << TAG_BITS | word.load(SHARED) >> TAG_SHIFT);
            zero_lanes(four ^ tags)
        };
        // A bit's position is the lane, and which of the four groups of slots it is of.
        TagMatches(
            part(&one[..4]) >> 3
                | (part(&one[4..BUCKET_SLOTS]) & SLOT_LANES) >> 2
                | part(&two[..4]) >> 1
                | part(&two[4..BUCKET_SLOTS]) & SLOT_LANES,
        )
    }
}

impl Iterator for TagMatches {
    /// Whether the slot is in the second bucket, and its position there.
    type Item = (bool, usize);

    #[inline]
    fn next(&mut self) -> Option<(bool, usize)> {
        let bit = self.0.trailing_zeros();
        if bit == u64::BITS {
            return None;
        }
        self.0 &= self.0 - 1;
        // Bits 12 to 15 of each lane stand for the four groups.
        let (part, which) = (bit % TAG_BITS - (TAG_BITS - 4), bit / TAG_BITS);
        Some((part >= 2, (part % 2 * 4 + which) as usize))
    }
}

/// The highest bit of each lane that is 0, and possibly of lanes above such a one (A. Mycroft, 1987).
#[inline]
fn zero_lanes(four: u64) -> u64 {
    four.wrapping_sub(LANE_LOW_BITS) & !four & LANE_HIGH_BITS
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
            let places = TagMatches::of(&atomic(one), &atomic(two), tag);
            let found: Vec<usize> =
                places.map(|(second, place)| usize::from(second) * 8 + place).collect();
            let expected: Vec<usize> = slots.filter(|n| words[*n] >> 48 == tag).collect();
            prop_assert!(expected.iter().all(|n| found.contains(n)), "{expected:?} of {found:?}");
            // A false match is above a true one, and differs in one bit.
            prop_assert!(found.iter().all(|n| n % 8 < BUCKET_SLOTS && words[*n] >> 48 ^ tag <= 1), "{found:?}");
        }
    }
}
