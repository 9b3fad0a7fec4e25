//! The memory mapping of a store. Its address range is reserved at once. The system provides a page when
//! it is first written, and takes it back when it is released.

use std::fs::File;
use std::io;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

/// The size of a memory page.
pub const PAGE_BYTES: usize = 4096;

/// A memory mapping.
pub struct Memory {
    map: MmapRaw,
    shared: bool,
    /// A file that stays locked as long as it is open.
    _file: Option<File>,
}

impl Memory {
    /// Private memory of this process, all zeros.
    pub fn anonymous(length: usize) -> io::Result<Memory> {
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Memory { map: map.into(), shared: false, _file: None })
    }

    /// The bytes of a file, shared with every process that maps it.
    pub fn shared(file: &File, length: usize) -> io::Result<Memory> {
        let map = MmapOptions::new().len(length).map_raw(file)?;
        Ok(Memory { map, shared: true, _file: None })
    }

    /// The bytes of a file, which stays open.
    pub fn kept(file: File, length: usize) -> io::Result<Memory> {
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        Ok(Memory { map, shared: true, _file: Some(file) })
    }

    /// Let the system use huge pages.
    pub fn use_huge_pages(&self) -> io::Result<()> {
        self.map.advise(Advice::HugePage)
    }

    pub fn start(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Return pages to the system. They are zeros when they are next read. The caller makes sure that
    /// no thread uses them now.
    pub fn release_pages(&self, offset: usize, length: usize) {
        let advice = match self.shared {
            true => UncheckedAdvice::Remove,
            false => UncheckedAdvice::DontNeed,
        };
        // SAFETY: only this crate's raw pointers refer to these pages, and the caller guarantees that
        // none is in use. If the system refuses, the pages stay, which is safe.
        let _ = unsafe { self.map.unchecked_advise_range(advice, offset, length) };
    }
}
