//! A slot of the hash table: one word that says which item is where, and how it has been used.

use crate::item::Marks;

/// Where an item begins, in words of four bytes from the first segment, plus one.
const PLACE_BITS: u32 = 38;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
const USES_SHIFT: u32 = PLACE_BITS;
const USES_MASK: u64 = 3 << USES_SHIFT;
const FETCHED: u64 = 1 << 40;
const STALE: u64 = 1 << 41;
const WON: u64 = 1 << 42;
const BINARY_KEY: u64 = 1 << 43;
pub const TAG_SHIFT: u32 = 48;
/// Uses are counted up to this.
pub const USES_MOST: u64 = 3;
/// The furthest byte that a slot can name.
pub const REACH_BYTES: u64 = (PLACE_MASK - 2) * 4;

/// A slot's word. Empty is 0; a ghost keeps the tag of an item that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u64);

/// The bits of a hash that a slot keeps.
#[inline]
pub fn tag(hash: u64) -> u64 {
    hash >> TAG_SHIFT
}

impl Slot {
    pub const EMPTY: Slot = Slot(0);

    /// The slot of an item that begins at a byte of the segments.
    pub fn new(hash: u64, offset: usize, marks: Marks) -> Slot {
        Slot(tag(hash) << TAG_SHIFT | (offset as u64 / 4 + 1)).with_marks(marks)
    }

    pub fn ghost(self) -> Slot {
        Slot(self.0 >> TAG_SHIFT << TAG_SHIFT | PLACE_MASK)
    }

    pub fn is_ghost(self) -> bool {
        self.0 & PLACE_MASK == PLACE_MASK
    }

    /// Whether an item is here.
    #[inline]
    pub fn is_live(self) -> bool {
        let place = self.0 & PLACE_MASK;
        place != 0 && place != PLACE_MASK
    }

    #[inline]
    pub fn has_tag(self, tag: u64) -> bool {
        (self.0 ^ tag << TAG_SHIFT) < 1 << TAG_SHIFT
    }

    /// Where the item begins.
    #[inline]
    pub fn offset(self) -> usize {
        ((self.0 & PLACE_MASK) as usize - 1) * 4
    }

    /// Whether it leads to the same place as another.
    #[inline]
    pub fn leads_as(self, other: Slot) -> bool {
        (self.0 ^ other.0) & PLACE_MASK == 0
    }

    /// The same item elsewhere, with so many uses to its credit.
    pub fn moved(self, offset: usize, uses: u64) -> Slot {
        let kept = self.0 & !(PLACE_MASK | USES_MASK);
        Slot(kept | uses << USES_SHIFT | (offset as u64 / 4 + 1))
    }

    pub fn uses(self) -> u64 {
        (self.0 & USES_MASK) >> USES_SHIFT
    }

    pub fn with_uses(self, uses: u64) -> Slot {
        Slot(self.0 & !USES_MASK | uses << USES_SHIFT)
    }

    /// Whether another use changes nothing.
    #[inline]
    pub fn is_worn(self) -> bool {
        self.0 & (USES_MASK | FETCHED) == USES_MASK | FETCHED
    }

    /// What it is after another use.
    #[inline]
    pub fn used(self) -> Slot {
        let more = if self.0 & USES_MASK == USES_MASK { 0 } else { 1 << USES_SHIFT };
        Slot((self.0 | FETCHED) + more)
    }

    pub fn as_fetched(self) -> Slot {
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
    fn a_slot_keeps_what_it_is_told() {
        let marks = Marks { stale: true, won: false, binary_key: true };
        let slot = Slot::new(0xabcd_0000_0000_0000, 4096, marks);
        assert!(slot.is_live() && slot.has_tag(0xabcd) && !slot.fetched());
        assert_eq!((slot.offset(), slot.marks(), slot.uses()), (4096, marks, 0));
        let used = slot.used().used().used().used();
        assert_eq!((used.uses(), used.offset(), used.fetched()), (USES_MOST, 4096, true));
        assert!(used.is_worn() && used.used() == used && !slot.used().used().is_worn());
        let moved = used.moved(8, 1);
        assert_eq!((moved.offset(), moved.uses(), moved.marks()), (8, 1, marks));
        assert!(moved.ghost().is_ghost() && moved.ghost().has_tag(0xabcd));
        assert!(!moved.ghost().is_live() && !Slot::EMPTY.is_live());
    }
}
