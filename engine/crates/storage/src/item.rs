//! An item's bytes. All begin on four bytes, so that what changes in place is one atomic word:
//!
//! | word | |
//! |---|---|
//! | head | value length (20 bits), key length (8), which of the optional words follow (4) |
//! | accessed | seconds since the epoch; changes in place |
//! | length | instead of the head's, where that is too narrow |
//! | flags | where they are not 0 |
//! | expires | seconds since the epoch, where there ever was one; changes in place |
//! | cas | two words, where the item's place does not say it |
//!
//! Then the key, the value, and up to three bytes of nothing.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::slot::Slot;

const LENGTH_BITS: u32 = 20;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;
const LONG: u32 = 1 << 28;
const FLAGS: u32 = 1 << 29;
const EXPIRES: u32 = 1 << 30;
const CAS: u32 = 1 << 31;
/// What of these there is begins at this bit.
const OPTIONS_SHIFT: u32 = 28;

/// What the words before the key take, by what of the optional ones there is.
const HEAD_BYTES: [u8; 16] = {
    let mut bytes = [8; 16];
    let mut options = 0;
    while options < 16 {
        let cas = (options as u32) << OPTIONS_SHIFT & CAS != 0;
        bytes[options] += 4 * options.count_ones() as u8 + if cas { 4 } else { 0 };
        options += 1;
    }
    bytes
};

/// An item as a reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    pub value: &'a [u8],
    pub flags: u32,
    pub cas: u64,
    /// Seconds since the epoch; 0 is never.
    pub expires_s: u32,
    /// When it was stored or last read.
    pub accessed_s: u32,
    /// Whether it was read since it was stored.
    pub fetched: bool,
    pub marks: Marks,
}

/// What the meta protocol notes on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// To be stored anew; served until then.
    pub stale: bool,
    /// A client has been told that it is the one to store it anew.
    pub won: bool,
    /// Its key was given in base64, and is shown so.
    pub binary_key: bool,
}

/// What is to be written.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub flags: u32,
    pub expires_s: u32,
    pub accessed_s: u32,
    /// `None` where the item's place says it.
    pub cas: Option<u64>,
}

impl Parts<'_> {
    fn long(&self) -> bool {
        self.value.len() > LENGTH_MASK as usize
    }

    /// What it takes in a segment.
    pub fn bytes(&self) -> usize {
        let words = 2
            + usize::from(self.long())
            + usize::from(self.flags != 0)
            + usize::from(self.expires_s != 0)
            + 2 * usize::from(self.cas.is_some());
        4 * words + (self.key.len() + self.value.len()).next_multiple_of(4)
    }

    /// Write the item.
    ///
    /// # Safety
    ///
    /// `place` is on four bytes, has room for `bytes()`, and nobody reads or writes there.
    pub unsafe fn write(&self, place: *mut u8) {
        let option = |bit: u32, there: bool| if there { bit } else { 0 };
        let long = self.long();
        let head = (if long { 0 } else { self.value.len() as u32 })
            | (self.key.len() as u32) << LENGTH_BITS
            | option(LONG, long)
            | option(FLAGS, self.flags != 0)
            | option(EXPIRES, self.expires_s != 0)
            | option(CAS, self.cas.is_some());
        let cas = self.cas.unwrap_or(0);
        let words = [
            (true, head),
            (true, self.accessed_s),
            (long, self.value.len() as u32),
            (self.flags != 0, self.flags),
            (self.expires_s != 0, self.expires_s),
            (self.cas.is_some(), cas as u32),
            (self.cas.is_some(), (cas >> 32) as u32),
        ];
        let mut at = place;
        // SAFETY: by the contract there is room for all of this, and it is ours alone.
        unsafe {
            for (_, word) in words.into_iter().filter(|(there, _)| *there) {
                at.cast::<u32>().write(word);
                at = at.add(4);
            }
            at.copy_from_nonoverlapping(self.key.as_ptr(), self.key.len());
            at.add(self.key.len()).copy_from_nonoverlapping(self.value.as_ptr(), self.value.len());
        }
    }
}

/// An item in its place: where its parts are. Reading it is right only while its segment stays.
#[derive(Clone, Copy)]
pub struct Placed {
    place: *mut u8,
    head: u32,
    length: u32,
}

impl Placed {
    /// The item at a place that has room for a head.
    ///
    /// # Safety
    ///
    /// 28 bytes from `place`, a head at its longest, can be read, and it is on four bytes.
    #[inline]
    pub unsafe fn at(place: *mut u8) -> Placed {
        let mut placed = Placed { place, head: 0, length: 0 };
        // SAFETY: the contract's, here and below.
        unsafe {
            placed.head = placed.word(0).load(Ordering::Relaxed);
            placed.length = match placed.head & LONG {
                0 => placed.head & LENGTH_MASK,
                _ => placed.word(2).load(Ordering::Relaxed),
            };
        }
        placed
    }

    /// # Safety
    ///
    /// The word is inside the head's room.
    #[inline]
    unsafe fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: aligned and in bounds by the contract; words of the head are only ever read and
        // written as atomics once the item is in its place.
        unsafe { AtomicU32::from_ptr(self.place.cast::<u32>().add(index)) }
    }

    fn has(&self, option: u32) -> usize {
        usize::from(self.head & option != 0)
    }

    fn flags_at(&self) -> usize {
        2 + self.has(LONG)
    }

    fn expires_at(&self) -> usize {
        self.flags_at() + self.has(FLAGS)
    }

    fn cas_at(&self) -> usize {
        self.expires_at() + self.has(EXPIRES)
    }

    #[inline]
    fn head_bytes(&self) -> usize {
        HEAD_BYTES[(self.head >> OPTIONS_SHIFT) as usize].into()
    }

    #[inline]
    pub fn key_length(&self) -> usize {
        (self.head >> LENGTH_BITS & 0xff) as usize
    }

    #[inline]
    pub fn value_length(&self) -> usize {
        self.length as usize
    }

    /// What it takes in a segment.
    pub fn bytes(&self) -> usize {
        self.head_bytes() + (self.key_length() + self.value_length()).next_multiple_of(4)
    }

    /// Where the key begins, on four bytes; the value follows.
    #[inline]
    pub fn body(&self) -> *mut u8 {
        self.place.wrapping_add(self.head_bytes())
    }

    /// # Safety
    ///
    /// The whole item is there, and nobody writes to it as long as the slice is used.
    #[inline]
    pub unsafe fn key<'a>(&self) -> &'a [u8] {
        // SAFETY: the contract's.
        unsafe { std::slice::from_raw_parts(self.body(), self.key_length()) }
    }

    /// # Safety
    ///
    /// As for `key`.
    #[inline]
    pub unsafe fn value<'a>(&self) -> &'a [u8] {
        let start = self.body().wrapping_add(self.key_length());
        // SAFETY: the contract's.
        unsafe { std::slice::from_raw_parts(start, self.value_length()) }
    }

    #[inline]
    fn load(&self, index: usize) -> u32 {
        // SAFETY: `at` was given a place with room for the longest head.
        unsafe { self.word(index) }.load(Ordering::Relaxed)
    }

    pub fn flags(&self) -> u32 {
        if self.has(FLAGS) == 0 { 0 } else { self.load(self.flags_at()) }
    }

    #[inline]
    pub fn expires_s(&self) -> u32 {
        if self.has(EXPIRES) == 0 { 0 } else { self.load(self.expires_at()) }
    }

    #[inline]
    pub fn expired(&self, now_s: u32) -> bool {
        let expires_s = self.expires_s();
        expires_s != 0 && expires_s <= now_s
    }

    /// Change the expiry in place; false when the item has no word for it.
    pub fn set_expiry(&self, expires_s: u32) -> bool {
        if self.has(EXPIRES) == 0 {
            return expires_s == 0;
        }
        // SAFETY: as in `load`.
        unsafe { self.word(self.expires_at()) }.store(expires_s, Ordering::Relaxed);
        true
    }

    #[inline]
    pub fn accessed_s(&self) -> u32 {
        self.load(1)
    }

    /// Note when it was read; a word that says so already is left alone.
    #[inline]
    pub fn access(&self, now_s: u32) {
        if self.load(1) != now_s {
            // SAFETY: as in `load`.
            unsafe { self.word(1) }.store(now_s, Ordering::Relaxed);
        }
    }

    /// Its unique number; `implied` is what its place says.
    pub fn cas(&self, implied: u64) -> u64 {
        match self.has(CAS) {
            0 => implied,
            _ => {
                let at = self.cas_at();
                u64::from(self.load(at)) | u64::from(self.load(at + 1)) << 32
            }
        }
    }

    /// All of it beside the value.
    #[inline]
    pub fn describe<'a>(&self, slot: Slot, implied_cas: u64, value: &'a [u8]) -> Item<'a> {
        let mut item = Item {
            value,
            flags: 0,
            cas: implied_cas,
            expires_s: 0,
            accessed_s: self.accessed_s(),
            fetched: slot.fetched(),
            marks: slot.marks(),
        };
        if self.head >> OPTIONS_SHIFT != 0 {
            item.flags = self.flags();
            item.cas = self.cas(implied_cas);
            item.expires_s = self.expires_s();
        }
        item
    }

    /// # Safety
    ///
    /// As for `key`.
    pub unsafe fn parts<'a>(&self, implied_cas: u64) -> Parts<'a> {
        // SAFETY: the contract's.
        let (key, value) = unsafe { (self.key(), self.value()) };
        Parts {
            key,
            value,
            flags: self.flags(),
            expires_s: self.expires_s(),
            accessed_s: self.accessed_s(),
            cas: Some(self.cas(implied_cas)),
        }
    }
}
