//! Counts by the size of items: which class of sizes an item belongs to, and what each class holds.
//!
//! The store itself has no classes: any item may use any memory. Servers show these counts as memcached shows its slab
//! classes.

use crate::counters::Counters;
use crate::items::item::RawItem;

/// The most classes.
pub const CLASSES_MAX: usize = 63;
/// Sizes of classes are multiples of this.
const STEP_BYTES: usize = 8;
/// Most items are shorter.
const SMALL_BYTES: usize = 1024;
/// The flags of an item take this number of bytes if they are not 0.
const FLAGS_BYTES: usize = 4;

/// The sizes that are counted together.
#[derive(Clone, Debug)]
pub struct SizeClasses {
    /// The largest size of each class, in ascending order. The last class also has all longer items.
    largest: Vec<u32>,
    /// The class of each size below `SMALL_BYTES`, by its number of steps.
    small: [u8; SMALL_BYTES / STEP_BYTES],
    /// By the number of bits of a size: the first class that can have it.
    first: [u8; 33],
    header_bytes: usize,
}

impl SizeClasses {
    /// Classes with these largest sizes in bytes, in ascending order. An item's size is its key, its value, its flags
    /// if they are not 0, and `header_bytes`.
    ///
    /// # Panics
    ///
    /// If there is no class, if there are more than 63, or if a size is no multiple of eight.
    pub fn new(largest: Vec<u32>, header_bytes: usize) -> SizeClasses {
        assert!((1..=CLASSES_MAX).contains(&largest.len()), "1 to {CLASSES_MAX} classes");
        assert!(
            largest.iter().all(|most| (*most as usize).is_multiple_of(STEP_BYTES)),
            "steps of {STEP_BYTES}"
        );
        let last = largest.len() - 1;
        let small = std::array::from_fn(|steps| {
            let below = largest.iter().take_while(|most| (**most as usize) < steps * STEP_BYTES);
            below.count().min(last) as u8
        });
        let first = std::array::from_fn(|bits| {
            let least = if bits == 0 { 0 } else { 1_u64 << (bits - 1) };
            largest.iter().take_while(|most| u64::from(**most) < least).count() as u8
        });
        SizeClasses { largest, small, first, header_bytes }
    }

    /// The largest size of each class, in bytes.
    pub fn largest(&self) -> &[u32] {
        &self.largest
    }

    /// The index of an item's class, by the lengths of its key and its value.
    #[inline]
    pub fn of(&self, key_bytes: usize, value_bytes: usize, has_flags: bool) -> usize {
        let flags_bytes = if has_flags { FLAGS_BYTES } else { 0 };
        self.of_size(key_bytes + value_bytes + flags_bytes + self.header_bytes)
    }

    #[inline]
    fn of_size(&self, bytes: usize) -> usize {
        match self.small.get(bytes.div_ceil(STEP_BYTES)) {
            Some(class) => usize::from(*class),
            None => self.of_long(bytes),
        }
    }

    fn of_long(&self, bytes: usize) -> usize {
        let size = bytes.min(u32::MAX as usize) as u32;
        let mut class = usize::from(self.first[(u32::BITS - size.leading_zeros()) as usize]);
        while class < self.largest.len() - 1 && self.largest[class] < size {
            class += 1;
        }
        class.min(self.largest.len() - 1)
    }

    /// The size of an item, and the index of its class.
    #[inline]
    pub fn of_item(&self, raw: RawItem) -> (usize, usize) {
        let flags_bytes = if raw.has_flags() { FLAGS_BYTES } else { 0 };
        let bytes = raw.key_length() + raw.value_length() + flags_bytes + self.header_bytes;
        (bytes, self.of_size(bytes))
    }
}

/// The items and counters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassUsage {
    pub items: u64,
    /// The sizes of its items.
    pub bytes: u64,
    /// A command has stored an item of this class, or tried to.
    pub was_used: bool,
    /// The counters of its items; misses belong to no class.
    pub counters: Counters,
}

impl ClassUsage {
    pub fn add(&mut self, other: &ClassUsage) {
        self.items += other.items;
        self.bytes += other.bytes;
        self.was_used |= other.was_used;
        self.counters.add(&other.counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_has_the_first_class_that_holds_it() {
        let largest = vec![96, 120, 152, 192, 1184, 1480, 524_288];
        let classes = SizeClasses::new(largest.clone(), 59);
        for size in (63..3000).chain([524_287, 524_288, 524_289, 1 << 30]) {
            let expected = largest.iter().position(|most| size <= *most as usize).unwrap_or(6);
            assert_eq!(classes.of(4, size - 63, false), expected, "{size}");
        }
        assert_eq!(classes.of(4, 33, false), 0);
        assert_eq!(classes.of(4, 33, true), 1, "flags take memory too");
    }
}
