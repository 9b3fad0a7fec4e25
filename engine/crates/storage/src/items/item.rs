//! The bytes of an item. An item begins at a multiple of four bytes, so that each word that changes in
//! place is an atomic:
//!
//! | word | |
//! |---|---|
//! | header | value length (20 bits), key length (8), which of the optional words follow (4) |
//! | accessed | seconds since the epoch; changes in place |
//! | length | value length, if it does not fit the header |
//! | flags | if they are not 0 |
//! | expires | seconds since the epoch, if the item ever had an expiry; changes in place |
//! | cas | two words, if the item's offset does not imply the number |
//!
//! Then the key, the value, and up to three bytes of padding.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::items::marks::Marks;
use crate::items::slot::Slot;

const LENGTH_BITS: u32 = 20;
const LENGTH_MASK: u32 = (1 << LENGTH_BITS) - 1;
const LONG: u32 = 1 << 28;
const FLAGS: u32 = 1 << 29;
const EXPIRES: u32 = 1 << 30;
const CAS: u32 = 1 << 31;
/// The bits for the optional words begin here.
const OPTIONS_SHIFT: u32 = 28;

/// The length of the words before the key, by which optional words there are.
const HEADER_BYTES: [u8; 16] = {
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
    /// Seconds since the epoch; 0 means never.
    pub expires_s: u32,
    /// When it was stored or last read.
    pub accessed_s: u32,
    /// Whether it was read since it was stored.
    pub fetched: bool,
    pub marks: Marks,
}

/// The value of an item that is written.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    Bytes(&'a [u8]),
    /// This number of bytes, which are written later.
    Later(usize),
}

impl Value<'_> {
    fn len(&self) -> usize {
        match self {
            Value::Bytes(bytes) => bytes.len(),
            Value::Later(length) => *length,
        }
    }
}

/// The parts of an item, before it is written.
#[derive(Clone, Copy)]
pub struct ItemParts<'a> {
    pub key: &'a [u8],
    pub value: Value<'a>,
    pub flags: u32,
    pub expires_s: u32,
    pub accessed_s: u32,
    /// `None` if the item's offset implies it.
    pub cas: Option<u64>,
}

impl ItemParts<'_> {
    fn has_long_value(&self) -> bool {
        self.value.len() > LENGTH_MASK as usize
    }

    /// How many bytes of a segment it needs.
    pub fn bytes(&self) -> usize {
        let words = 2
            + usize::from(self.has_long_value())
            + usize::from(self.flags != 0)
            + usize::from(self.expires_s != 0)
            + 2 * usize::from(self.cas.is_some());
        4 * words + (self.key.len() + self.value.len()).next_multiple_of(4)
    }

    /// Write the item.
    ///
    /// # Safety
    ///
    /// `start` is aligned to four bytes and has room for `bytes()`, and no other thread reads or writes there.
    pub unsafe fn write(&self, start: *mut u8) {
        let option = |bit: u32, there: bool| if there { bit } else { 0 };
        let long = self.has_long_value();
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
        let mut at = start;
        // SAFETY: the caller guarantees room for all of this, and that no other thread uses it.
        unsafe {
            for (_, word) in words.into_iter().filter(|(there, _)| *there) {
                at.cast::<u32>().write(word);
                at = at.add(4);
            }
            at.copy_from_nonoverlapping(self.key.as_ptr(), self.key.len());
            if let Value::Bytes(value) = self.value {
                at.add(self.key.len()).copy_from_nonoverlapping(value.as_ptr(), value.len());
            }
        }
    }
}

/// A pointer to an item, with its header. What is read through it is valid only while the item's segment
/// is not reused.
#[derive(Clone, Copy)]
pub struct RawItem {
    start: *mut u8,
    header: u32,
    length: u32,
}

impl RawItem {
    /// Read the header of the item at `start`.
    ///
    /// # Safety
    ///
    /// The 28 bytes from `start`, the longest header, can be read, and `start` is aligned to four bytes.
    #[inline]
    pub unsafe fn at(start: *mut u8) -> RawItem {
        let mut raw = RawItem { start, header: 0, length: 0 };
        // SAFETY: the caller's guarantee, here and below.
        unsafe {
            raw.header = raw.word(0).load(Ordering::Relaxed);
            raw.length = match raw.header & LONG {
                0 => raw.header & LENGTH_MASK,
                _ => raw.word(2).load(Ordering::Relaxed),
            };
        }
        raw
    }

    /// # Safety
    ///
    /// The word is one of the header's.
    #[inline]
    unsafe fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: aligned and in bounds, as the caller guarantees; header words of a written item are
        // read and written as atomics only.
        unsafe { AtomicU32::from_ptr(self.start.cast::<u32>().add(index)) }
    }

    fn has(&self, option: u32) -> usize {
        usize::from(self.header & option != 0)
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
    fn header_bytes(&self) -> usize {
        HEADER_BYTES[(self.header >> OPTIONS_SHIFT) as usize].into()
    }

    #[inline]
    pub fn has_flags(&self) -> bool {
        self.header & FLAGS != 0
    }

    /// Whether another item has a key and a value of the same lengths, and flags if this one has.
    #[inline]
    pub fn is_sized_as(&self, other: RawItem) -> bool {
        const SIZED: u32 = !(EXPIRES | CAS);
        self.header & SIZED == other.header & SIZED && self.length == other.length
    }

    #[inline]
    pub fn key_length(&self) -> usize {
        (self.header >> LENGTH_BITS & 0xff) as usize
    }

    #[inline]
    pub fn value_length(&self) -> usize {
        self.length as usize
    }

    /// How many bytes of a segment it occupies.
    pub fn bytes(&self) -> usize {
        self.header_bytes() + (self.key_length() + self.value_length()).next_multiple_of(4)
    }

    /// Where the key begins, aligned to four bytes. The value follows it.
    #[inline]
    pub fn key_start(&self) -> *mut u8 {
        self.start.wrapping_add(self.header_bytes())
    }

    /// # Safety
    ///
    /// The whole item was written, and no thread writes to it while the slice is used.
    #[inline]
    pub unsafe fn key<'a>(&self) -> &'a [u8] {
        // SAFETY: the caller's guarantee.
        unsafe { std::slice::from_raw_parts(self.key_start(), self.key_length()) }
    }

    /// # Safety
    ///
    /// As for `key`.
    #[inline]
    pub unsafe fn value<'a>(&self) -> &'a [u8] {
        let start = self.key_start().wrapping_add(self.key_length());
        // SAFETY: the caller's guarantee.
        unsafe { std::slice::from_raw_parts(start, self.value_length()) }
    }

    #[inline]
    fn load(&self, index: usize) -> u32 {
        // SAFETY: `at` was given a pointer to the longest header.
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

    /// Change the expiry in place. False if the item has no word for it.
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

    /// Note when it was read. The word is not written if it has this value already.
    #[inline]
    pub fn set_accessed(&self, now_s: u32) {
        if self.load(1) != now_s {
            // SAFETY: as in `load`.
            unsafe { self.word(1) }.store(now_s, Ordering::Relaxed);
        }
    }

    /// Its cas number. `implied` is the one that its offset implies.
    pub fn cas(&self, implied: u64) -> u64 {
        match self.has(CAS) {
            0 => implied,
            _ => {
                let at = self.cas_at();
                u64::from(self.load(at)) | u64::from(self.load(at + 1)) << 32
            }
        }
    }

    /// The item as readers see it, with this value.
    #[inline]
    pub fn item_with<'a>(&self, slot: Slot, implied_cas: u64, value: &'a [u8]) -> Item<'a> {
        let mut item = Item {
            value,
            flags: 0,
            cas: implied_cas,
            expires_s: 0,
            accessed_s: self.accessed_s(),
            fetched: slot.fetched(),
            marks: slot.marks(),
        };
        if self.header >> OPTIONS_SHIFT != 0 {
            item.flags = self.flags();
            item.cas = self.cas(implied_cas);
            item.expires_s = self.expires_s();
        }
        item
    }

    /// # Safety
    ///
    /// As for `key`.
    pub unsafe fn parts<'a>(&self, implied_cas: u64) -> ItemParts<'a> {
        // SAFETY: the caller's guarantee.
        let (key, value) = unsafe { (self.key(), self.value()) };
        ItemParts {
            key,
            value: Value::Bytes(value),
            flags: self.flags(),
            expires_s: self.expires_s(),
            accessed_s: self.accessed_s(),
            cas: Some(self.cas(implied_cas)),
        }
    }
}
