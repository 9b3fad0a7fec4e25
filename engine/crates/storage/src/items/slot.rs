//! A slot of the hash table: one word with an item's tag, offset, marks and uses.

use crate::items::marks::Marks;
use crate::memory::layout::LOCATION_BITS;

const LOCATION_MASK: u64 = (1 << LOCATION_BITS) - 1;
const USES_SHIFT: u32 = LOCATION_BITS;
const USES_MASK: u64 = 3 << USES_SHIFT;
const FETCHED: u64 = 1 << 40;
const STALE: u64 = 1 << 41;
const WON: u64 = 1 << 42;
const BINARY_KEY: u64 = 1 << 43;
const FLUSHED: u64 = 1 << 44;
pub const TAG_SHIFT: u32 = 48;
/// Uses are counted up to this.
pub const USES_MAX: u64 = 3;

/// The word of a slot. An empty slot is 0. A ghost has only the tag of an item that was evicted. That of an item which a
/// flush removed also has the item's offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

/// The bits of the hash that a slot has.
#[inline]
pub fn tag(hash: u64) -> u64 {
    hash >> TAG_SHIFT
}

impl Slot {
    pub const EMPTY: Slot = Slot(0);

    /// The slot of an item at this offset.
    pub fn new(hash: u64, offset: usize, marks: Marks) -> Slot {
        Slot(tag(hash) << TAG_SHIFT | (offset as u64 / 4 + 1)).with_marks(marks)
    }

    /// The ghost of this item.
    pub fn to_ghost(self) -> Slot {
        Slot(self.0 >> TAG_SHIFT << TAG_SHIFT | LOCATION_MASK)
    }

    pub fn is_ghost(self) -> bool {
        self.0 & LOCATION_MASK == LOCATION_MASK
    }

    /// The slot after a flush: of an item, what is left to recognize it.
    pub fn to_flushed(self) -> Slot {
        let kept = self.0 >> TAG_SHIFT << TAG_SHIFT | self.0 & LOCATION_MASK | FLUSHED;
        if self.is_live() || self.is_flushed() { Slot(kept) } else { Slot::EMPTY }
    }

    pub fn is_flushed(self) -> bool {
        self.0 & FLUSHED != 0
    }

    /// Whether there is no item, but something that an item may take the place of.
    pub fn is_vacant(self) -> bool {
        self.is_ghost() || self.is_flushed()
    }

    /// Whether the slot has an item.
    #[inline]
    pub fn is_live(self) -> bool {
        (self.0 & (LOCATION_MASK | FLUSHED)).wrapping_sub(1) < LOCATION_MASK - 1
    }

    #[inline]
    pub fn has_tag(self, tag: u64) -> bool {
        (self.0 ^ tag << TAG_SHIFT) < 1 << TAG_SHIFT
    }

    /// The item's offset from the first segment.
    #[inline]
    pub fn offset(self) -> usize {
        ((self.0 & LOCATION_MASK) as usize - 1) * 4
    }

    /// Whether both have an item at the same offset, or both are empty, or both are ghosts.
    #[inline]
    pub fn same_location(self, other: Slot) -> bool {
        (self.0 ^ other.0) & (LOCATION_MASK | FLUSHED) == 0
    }

    /// The same item at another offset, with this number of uses.
    pub fn relocated(self, offset: usize, uses: u64) -> Slot {
        let kept = self.0 & !(LOCATION_MASK | USES_MASK);
        Slot(kept | uses << USES_SHIFT | (offset as u64 / 4 + 1))
    }

    pub fn uses(self) -> u64 {
        (self.0 & USES_MASK) >> USES_SHIFT
    }

    pub fn with_uses(self, uses: u64) -> Slot {
        Slot(self.0 & !USES_MASK | uses << USES_SHIFT)
    }

    /// Whether another use does not change the slot.
    #[inline]
    pub fn is_saturated(self) -> bool {
        self.0 & (USES_MASK | FETCHED) == USES_MASK | FETCHED
    }

    /// The slot after another use.
    #[inline]
    pub fn with_use(self) -> Slot {
        let more = if self.0 & USES_MASK == USES_MASK { 0 } else { 1 << USES_SHIFT };
        Slot((self.0 | FETCHED) + more)
    }

    pub fn with_fetched(self) -> Slot {
        Slot(self.0 | FETCHED)
    }

    #[inline]
    pub fn fetched(self) -> bool {
        self.0 & FETCHED != 0
    }

    #[inline]
    pub fn marks(self) -> Marks {
        Marks {
            stale: self.0 & STALE != 0,
            won: self.0 & WON != 0,
            binary_key: self.0 & BINARY_KEY != 0,
        }
    }

    pub fn with_marks(self, marks: Marks) -> Slot {
        let bit = |bit: u64, set: bool| if set { bit } else { 0 };
        let rest = self.0 & !(STALE | WON | BINARY_KEY);
        Slot(
            rest | bit(STALE, marks.stale)
                | bit(WON, marks.won)
                | bit(BINARY_KEY, marks.binary_key),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_all_its_fields() {
        let marks = Marks { stale: true, won: false, binary_key: true };
        let slot = Slot::new(0xabcd_0000_0000_0000, 4096, marks);
        assert!(slot.is_live() && slot.has_tag(0xabcd) && !slot.fetched());
        assert_eq!((slot.offset(), slot.marks(), slot.uses()), (4096, marks, 0));
        let used = slot.with_use().with_use().with_use().with_use();
        assert_eq!((used.uses(), used.offset(), used.fetched()), (USES_MAX, 4096, true));
        assert!(
            used.is_saturated()
                && used.with_use() == used
                && !slot.with_use().with_use().is_saturated()
        );
        let relocated = used.relocated(8, 1);
        assert_eq!((relocated.offset(), relocated.uses(), relocated.marks()), (8, 1, marks));
        assert!(relocated.to_ghost().is_ghost() && relocated.to_ghost().has_tag(0xabcd));
        assert!(!relocated.to_ghost().is_live() && !Slot::EMPTY.is_live());
        let flushed = relocated.to_flushed();
        assert!(flushed.is_flushed() && flushed.has_tag(0xabcd) && flushed.offset() == 8);
        assert!(!flushed.is_live() && !flushed.is_ghost() && flushed.to_flushed() == flushed);
        assert!(!flushed.same_location(relocated));
        assert_eq!([Slot::EMPTY, slot.to_ghost()].map(Slot::to_flushed), [Slot::EMPTY; 2]);
    }
}
