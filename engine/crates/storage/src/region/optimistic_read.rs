//! Reads of memory that other processes may overwrite meanwhile, without a lock.
//!
//! Each segment has a sequence lock: its generation changes whenever the segment is reused. What was read
//! is valid only if the generation is still the same afterwards; otherwise the read is repeated.

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::items::item::{Item, RawItem};
use crate::items::slot::Slot;
use crate::memory::atomics::{LOCKED, SHARED};
use crate::region::Region;
use crate::region::lookup::Lookup;

/// A value in shared memory. Its bytes may change while they are read; then the result is discarded.
pub struct SharedValue {
    raw: RawItem,
}

impl SharedValue {
    pub fn length(&self) -> usize {
        self.raw.value_length()
    }

    /// A byte of the value.
    ///
    /// # Panics
    ///
    /// If the value is shorter.
    #[inline]
    pub fn byte(&self, index: usize) -> u8 {
        assert!(index < self.length(), "byte {index} of {}", self.length());
        let at = self.raw.key_start().wrapping_add(self.raw.key_length() + index);
        // SAFETY: the item ends inside its segment; the load is atomic, so that a concurrent write by
        // another process does no harm.
        unsafe { AtomicU8::from_ptr(at) }.load(LOCKED)
    }
}

thread_local! {
    static COPY_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The buffer for a copy. A thread keeps it for its next copy.
struct CopyBuffer(Vec<u8>);

impl Drop for CopyBuffer {
    fn drop(&mut self) {
        COPY_BUFFER.set(std::mem::take(&mut self.0));
    }
}

/// A copy of an item of a shared store.
pub struct CopiedItem {
    body: CopyBuffer,
    key_length: usize,
    /// The item without its value.
    item: Item<'static>,
}

impl CopiedItem {
    /// Copy the item of a key, if the store has it.
    pub fn of(lookup: &Lookup<'_>, now_s: u32) -> Option<CopiedItem> {
        let region = lookup.region;
        let mut body = CopyBuffer(COPY_BUFFER.take());
        loop {
            let found = OptimisticRead::find(region, lookup.hash, lookup.key)?;
            let OptimisticRead { raw, slot, .. } = found;
            let expired = raw.expired(now_s);
            let key_length = raw.key_length();
            body.0.clear();
            copy_words(raw.key_start(), key_length + raw.value_length(), &mut body.0);
            let item = raw.item_with(slot, region.implied_cas(slot.offset()), &[]);
            if !found.is_valid(region) {
                continue;
            }
            if expired {
                return None;
            }
            region.record_use(found.number, slot);
            return Some(CopiedItem { body, key_length, item });
        }
    }

    #[inline]
    pub fn item(&self) -> Item<'_> {
        Item { value: &self.body.0[self.key_length..], ..self.item }
    }
}

/// An item that was found, and its segment's generation before that.
pub struct OptimisticRead {
    pub number: usize,
    pub slot: Slot,
    pub raw: RawItem,
    generation: u32,
}

impl OptimisticRead {
    #[inline]
    pub fn find(region: &Region, hash: u64, key: &[u8]) -> Option<OptimisticRead> {
        loop {
            let mut seen = None;
            let mut changed = false;
            let found = region.search(hash, |slot| {
                let Some((raw, generation)) = read_header(region, slot) else {
                    changed = true;
                    return false;
                };
                seen = Some((raw, generation));
                key_matches(raw.key_start(), key) && raw.key_length() == key.len()
            });
            let Some(((number, slot), (raw, generation))) = found.zip(seen) else {
                if changed {
                    continue;
                }
                return None;
            };
            // The slot still leads there, so that the generation is this item's.
            if Slot(region.slot(number).load(SHARED)).same_location(slot) {
                return Some(OptimisticRead { number, slot, raw, generation });
            }
        }
    }

    /// Its value in shared memory.
    pub fn shared_value(&self) -> SharedValue {
        SharedValue { raw: self.raw }
    }

    /// Whether everything that was read belongs to this item.
    #[inline]
    pub fn is_valid(&self, region: &Region) -> bool {
        fence(Ordering::Acquire);
        let segment = region.segment_of(self.slot.offset());
        region.segment_meta(segment).generation.load(Ordering::Relaxed) == self.generation
    }
}

/// The item of a slot and its segment's generation; `None` if the item was overwritten just now.
#[inline]
fn read_header(region: &Region, slot: Slot) -> Option<(RawItem, u32)> {
    let offset = slot.offset();
    let layout = &region.layout;
    if offset >= layout.segments * layout.segment {
        return None;
    }
    let meta = region.segment_meta(region.segment_of(offset));
    let generation = meta.generation.load(SHARED);
    let raw = region.raw_item(slot);
    let inside = offset + raw.bytes() <= layout.segments * layout.segment;
    inside.then_some((raw, generation))
}

/// Copy bytes that are aligned to four bytes and may be overwritten meanwhile.
fn copy_words(from: *mut u8, length: usize, into: &mut Vec<u8>) {
    into.reserve(length.next_multiple_of(4));
    for word in 0..length.div_ceil(4) {
        // SAFETY: aligned and inside the mapping: an item's length is a multiple of four.
        let word = unsafe { AtomicU32::from_ptr(from.cast::<u32>().add(word)) };
        into.extend_from_slice(&word.load(LOCKED).to_ne_bytes());
    }
    into.truncate(length);
}

/// Whether these bytes begin with the key. The key's last word may also have bytes of the value.
#[inline]
fn key_matches(at: *mut u8, key: &[u8]) -> bool {
    let word = |n: usize| {
        // SAFETY: as in `copy_words`; keys have at most 250 bytes, and a spare page follows.
        unsafe { AtomicU32::from_ptr(at.cast::<u32>().add(n)) }.load(LOCKED).to_ne_bytes()
    };
    let (words, rest) = key.as_chunks::<4>();
    words.iter().enumerate().all(|(n, bytes)| word(n) == *bytes)
        && (rest.is_empty() || word(words.len())[..rest.len()] == *rest)
}
