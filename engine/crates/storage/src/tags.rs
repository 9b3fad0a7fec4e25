//! Which slots of two buckets have a tag: what every search begins with. All are compared, whatever
//! is found: which of them it is, is what no processor foresees.

use std::sync::atomic::AtomicU64;

use crate::layout::BUCKET_SLOTS;
use crate::region::SEEN;
use crate::slot::TAG_SHIFT;

/// The words of a bucket, as `Region::bucket` has them.
type Bucket = [AtomicU64; BUCKET_SLOTS + 1];

/// The bits of slots, where a bit stands for each word of two buckets.
const SLOTS: u32 = 0x7f7f;

/// A bit for each slot that has the tag: those of the second bucket begin at the ninth.
#[inline]
pub fn places(one: &Bucket, two: &Bucket, tag: u64) -> u32 {
    #[cfg(target_arch = "x86_64")]
    let places = simd::places(one, two, tag);
    #[cfg(not(target_arch = "x86_64"))]
    let places = each(one, two, tag);
    places & SLOTS
}

/// One word after the other.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn each(one: &Bucket, two: &Bucket, tag: u64) -> u32 {
    let has = |word: &AtomicU64| u32::from(word.load(SEEN) >> TAG_SHIFT == tag);
    one.iter().chain(two).rev().fold(0, |places, word| places << 1 | has(word))
}

#[cfg(target_arch = "x86_64")]
mod simd {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi16, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32,
        _mm_set_epi64x, _mm_set1_epi64x, _mm_setzero_si128, _mm_srli_epi64, _mm_xor_si128,
    };

    use super::{AtomicU64, Bucket, SEEN, TAG_SHIFT};

    /// All words at once, with what every x86-64 has (SSE2).
    #[inline]
    pub fn places(one: &Bucket, two: &Bucket, tag: u64) -> u32 {
        // SAFETY: the target has SSE2, which is all that they need.
        unsafe {
            let tags = _mm_set1_epi64x((tag << TAG_SHIFT).cast_signed());
            let same = _mm_packs_epi16(differences(one, tags), differences(two, tags));
            _mm_movemask_epi8(same).cast_unsigned()
        }
    }

    /// For each word of a bucket 16 bits: all set where its tag is the one.
    #[inline]
    unsafe fn differences(bucket: &Bucket, tags: __m128i) -> __m128i {
        let [a, b, c, d, e, f, g, h] = bucket;
        // SAFETY: as above. What is narrowed is cut off at its largest: only 0 stays 0.
        unsafe {
            let pair = |low: &AtomicU64, high: &AtomicU64| {
                let words =
                    _mm_set_epi64x(high.load(SEEN).cast_signed(), low.load(SEEN).cast_signed());
                _mm_srli_epi64::<{ TAG_SHIFT as i32 }>(_mm_xor_si128(words, tags))
            };
            let (first, last) =
                (_mm_packs_epi32(pair(a, b), pair(c, d)), _mm_packs_epi32(pair(e, f), pair(g, h)));
            _mm_cmpeq_epi16(_mm_packs_epi32(first, last), _mm_setzero_si128())
        }
    }
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
        fn slots_are_found_by_their_tags(one in bucket(), two in bucket(), known in 0_usize..16) {
            let tag = one.iter().chain(&two).nth(known).expect("a word") >> 48;
            let words = |bucket: [u64; 8]| bucket.map(AtomicU64::new);
            let (one, two) = (words(one), words(two));
            prop_assert_eq!(places(&one, &two, tag), each(&one, &two, tag) & SLOTS);
        }
    }
}
