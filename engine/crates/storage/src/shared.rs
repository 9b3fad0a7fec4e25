//! A store in memory that several processes share: a file, best in /dev/shm.
//!
//! Readers take no lock and make no system call. They look at bytes that a writer may be about to
//! write over, so what they read counts only once the segment's generation is seen to be unchanged:
//! a sequence lock on each segment. A reader that dies leaves nothing behind; after a writer that
//! dies the next one mends the region (`mend.rs`).

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering, fence};

use crate::hash;
use crate::item::{Item, Placed};
use crate::layout::{Geometry, StoreHead};
use crate::memory::Memory;
use crate::region::{OWN, Region, SEEN};
use crate::slot::Slot;
use crate::store::Store;
use crate::wanted::Wanted;

/// "cmstore" and the version of the layout.
const MAGIC: u64 = u64::from_be_bytes(*b"cmstore\x02");
const KNOWN_TEXT: &[u8] = b"cachemark";

/// The value of an item in shared memory, in its place. Its bytes may change while they are read;
/// what was read then is thrown away.
pub struct InPlace {
    placed: Placed,
}

impl InPlace {
    pub fn length(&self) -> usize {
        self.placed.value_length()
    }

    /// A byte of the value.
    ///
    /// # Panics
    ///
    /// When the value is shorter.
    #[inline]
    pub fn byte(&self, index: usize) -> u8 {
        assert!(index < self.length(), "byte {index} of {}", self.length());
        let at = self.placed.body().wrapping_add(self.placed.key_length() + index);
        // SAFETY: the item was found to end inside its segment; as an atomic, a write by another
        // process at the same time is no harm.
        unsafe { AtomicU8::from_ptr(at) }.load(OWN)
    }
}

impl Store {
    /// Make a store in a file, which must not be there yet.
    pub fn create(path: &Path, limit_bytes: usize, hash_power: Option<u32>) -> io::Result<Store> {
        let geometry = Geometry::new(limit_bytes, hash_power)
            .map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(geometry.length() as u64)?;
        let store = Store::over(Memory::shared(&file, geometry.length())?, geometry, true);
        store.lay_out()?;
        let head = store.regions[0].store();
        head.hash.store(hash::of(KNOWN_TEXT), OWN);
        head.limit_bytes.store(geometry.limit_bytes, OWN);
        head.hash_power.store(geometry.hash_power, OWN);
        head.regions.store(geometry.regions, OWN);
        head.magic.store(MAGIC, SEEN);
        Ok(store)
    }

    /// The store that another process made in a file.
    pub fn open(path: &Path) -> io::Result<Store> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
        let length = file.metadata()?.len();
        if length < size_of::<StoreHead>() as u64 {
            return wrong("no store, or one that is not complete");
        }
        let memory = Memory::shared(&file, length as usize)?;
        // SAFETY: the mapping is long enough, page-aligned, and the head is all atomics.
        let head = unsafe { &*memory.start().cast::<StoreHead>() };
        if head.magic.load(SEEN) != MAGIC || head.hash.load(OWN) != hash::of(KNOWN_TEXT) {
            return wrong("no store of this version of cachemark, or one that is not complete");
        }
        let geometry = Geometry {
            limit_bytes: head.limit_bytes.load(OWN),
            hash_power: head.hash_power.load(OWN),
            regions: head.regions.load(OWN),
        };
        if geometry.regions == 0 || geometry.length() as u64 != length {
            return wrong("a store whose file has been cut or lengthened");
        }
        Ok(Store::over(memory, geometry, true))
    }

    /// Look at a value where it is, without a copy. `look` may be called more than once, and may
    /// see bytes that are being written over: what it returns counts only when nothing changed.
    #[inline]
    pub fn peek<R>(&self, key: &[u8], now_s: u32, look: impl Fn(&InPlace) -> R) -> Option<R> {
        let hash = hash::of(key);
        let region = self.region(hash);
        let _visit = (!region.shared).then(|| self.grace.enter());
        loop {
            let found = Glimpse::find(region, hash, key)?;
            if found.placed.expired(now_s) {
                if found.unchanged(region) {
                    return None;
                }
                continue;
            }
            let result = look(&InPlace { placed: found.placed });
            if found.unchanged(region) {
                region.use_slot(found.number, found.slot);
                return Some(result);
            }
        }
    }
}

thread_local! {
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Room for a copy, which a thread keeps for its next.
struct Room(Vec<u8>);

impl Drop for Room {
    fn drop(&mut self) {
        ROOM.set(std::mem::take(&mut self.0));
    }
}

/// An item that was copied out of a store in which others write.
pub struct Copied {
    body: Room,
    key_length: usize,
    /// All of it but the value.
    item: Item<'static>,
}

impl Copied {
    /// The item of a key, if it is there.
    pub fn of(wanted: &Wanted<'_>, now_s: u32) -> Option<Copied> {
        let region = wanted.region;
        let mut body = Room(ROOM.take());
        loop {
            let found = Glimpse::find(region, wanted.hash, wanted.key)?;
            let Glimpse { placed, slot, .. } = found;
            let expired = placed.expired(now_s);
            let key_length = placed.key_length();
            body.0.clear();
            copy_words(placed.body(), key_length + placed.value_length(), &mut body.0);
            let item = placed.describe(slot, region.implied_cas(slot.offset()), &[]);
            if !found.unchanged(region) {
                continue;
            }
            if expired {
                return None;
            }
            region.use_slot(found.number, slot);
            return Some(Copied { body, key_length, item });
        }
    }

    #[inline]
    pub fn item(&self) -> Item<'_> {
        Item { value: &self.body.0[self.key_length..], ..self.item }
    }
}

/// An item that was seen, and the generation of its segment before that.
struct Glimpse {
    number: usize,
    slot: Slot,
    placed: Placed,
    generation: u32,
}

impl Glimpse {
    #[inline]
    fn find(region: &Region, hash: u64, key: &[u8]) -> Option<Glimpse> {
        loop {
            let mut seen = None;
            let mut changed = false;
            let found = region.search(hash, |slot| {
                let Some((placed, generation)) = glimpse(region, slot) else {
                    changed = true;
                    return false;
                };
                seen = Some((placed, generation));
                same_words(placed.body(), key) && placed.key_length() == key.len()
            });
            let Some(((number, slot), (placed, generation))) = found.zip(seen) else {
                if changed {
                    continue;
                }
                return None;
            };
            // The slot still leads there, so the generation is of this very item.
            if Slot(region.slot(number).load(SEEN)).leads_as(slot) {
                return Some(Glimpse { number, slot, placed, generation });
            }
        }
    }

    /// Whether all that was read of the item is really the item's.
    #[inline]
    fn unchanged(&self, region: &Region) -> bool {
        fence(Ordering::Acquire);
        let segment = region.segment_of(self.slot.offset());
        region.note(segment).generation.load(Ordering::Relaxed) == self.generation
    }
}

/// The item of a slot, if all of it is inside its segment; `None` where it was just written over.
#[inline]
fn glimpse(region: &Region, slot: Slot) -> Option<(Placed, u32)> {
    let offset = slot.offset();
    let layout = &region.layout;
    if offset >= layout.segments * layout.segment {
        return None;
    }
    let note = region.note(region.segment_of(offset));
    let generation = note.generation.load(SEEN);
    let placed = region.placed(slot);
    let inside = offset + placed.bytes() <= layout.segments * layout.segment;
    inside.then_some((placed, generation))
}

/// Copy bytes that begin on four bytes and may be written to meanwhile.
fn copy_words(from: *mut u8, length: usize, into: &mut Vec<u8>) {
    into.reserve(length.next_multiple_of(4));
    for word in 0..length.div_ceil(4) {
        // SAFETY: aligned and inside the mapping: items end on four bytes inside their segment.
        let word = unsafe { AtomicU32::from_ptr(from.cast::<u32>().add(word)) };
        into.extend_from_slice(&word.load(OWN).to_ne_bytes());
    }
    into.truncate(length);
}

/// Whether a key is there; its last word may hold bytes of the value besides.
#[inline]
fn same_words(at: *mut u8, key: &[u8]) -> bool {
    let word = |n: usize| {
        // SAFETY: as in `copy_words`; keys are at most 250 bytes, and a page to spare follows.
        unsafe { AtomicU32::from_ptr(at.cast::<u32>().add(n)) }.load(OWN).to_ne_bytes()
    };
    let (words, rest) = key.as_chunks::<4>();
    words.iter().enumerate().all(|(n, bytes)| word(n) == *bytes)
        && (rest.is_empty() || word(words.len())[..rest.len()] == *rest)
}
