//! The bytes that a store lives in: reserved whole, taken from the system page by page as they are
//! first written, and given back when they are not needed.

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw, UncheckedAdvice};

/// What the system hands out and takes back.
pub const PAGE_BYTES: usize = 4096;

pub struct Memory {
    map: MmapRaw,
    shared: bool,
}

impl Memory {
    /// Memory of this process alone, all zeros.
    pub fn anonymous(length: usize) -> io::Result<Memory> {
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Memory { map: map.into(), shared: false })
    }

    /// The bytes of a file, for every process that maps it.
    pub fn shared(file: &File, length: usize) -> io::Result<Memory> {
        let map = MmapOptions::new().len(length).map_raw(file)?;
        Ok(Memory { map, shared: true })
    }

    pub fn start(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Give pages back to the system; they are zeros when they are next looked at. The caller
    /// has seen to it that nobody looks at them now.
    pub fn discard(&self, offset: usize, length: usize) {
        let advice = match self.shared {
            true => UncheckedAdvice::Remove,
            false => UncheckedAdvice::DontNeed,
        };
        // SAFETY: nothing but this crate's raw pointers refers to these pages, and the caller
        // holds that none is in use. Where the system refuses, the pages stay, which is safe.
        let _ = unsafe { self.map.unchecked_advise_range(advice, offset, length) };
    }
}
