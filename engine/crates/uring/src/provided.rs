//! Buffers that the kernel fills: it takes one for each receipt and tells which.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The one group of buffers of a ring.
pub const GROUP: u16 = 0;
const COUNT: u16 = 256;
const BUFFER_BYTES: usize = 8 * 1024;
const PAGE_BYTES: usize = 4096;

/// Buffers, and the ring in which the kernel finds those that are free.
pub struct Provided {
    entries: *mut BufRingEntry,
    buffers: Vec<u8>,
    tail: u16,
}

// SAFETY: the entries are memory of its own, which only its methods touch, and the kernel.
unsafe impl Send for Provided {}

impl Provided {
    fn layout() -> Layout {
        let bytes = usize::from(COUNT) * size_of::<BufRingEntry>();
        Layout::from_size_align(bytes, PAGE_BYTES).expect("a small ring")
    }

    /// Make the buffers known to a ring. They must live as long as it does.
    pub fn register(to: &Submitter<'_>) -> io::Result<Provided> {
        // SAFETY: the layout is not empty.
        let entries = unsafe { alloc_zeroed(Self::layout()) }.cast::<BufRingEntry>();
        if entries.is_null() {
            handle_alloc_error(Self::layout());
        }
        let buffers = vec![0; usize::from(COUNT) * BUFFER_BYTES];
        let mut provided = Provided { entries, buffers, tail: 0 };
        // SAFETY: the entries are COUNT, on a page, and outlive the ring: whoever has both drops the
        // ring first.
        unsafe { to.register_buf_ring_with_flags(entries as u64, COUNT, GROUP, 0)? };
        (0..COUNT).for_each(|number| provided.give(number));
        Ok(provided)
    }

    /// What the kernel put into a buffer.
    pub fn filled(&self, number: u16, bytes: usize) -> &[u8] {
        let begin = usize::from(number) * BUFFER_BYTES;
        &self.buffers[begin..begin + bytes]
    }

    /// Let the kernel use a buffer, again.
    pub fn give(&mut self, number: u16) {
        let begin = usize::from(number) * BUFFER_BYTES;
        let place = usize::from(self.tail % COUNT);
        // SAFETY: `place` is one of COUNT entries; the kernel does not look at it before the tail
        // has passed it. The tail is a field of the first entry that entries themselves leave alone.
        unsafe {
            let entry = &mut *self.entries.add(place);
            entry.set_addr(self.buffers.as_mut_ptr().add(begin) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for Provided {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the ring that used it is gone.
        unsafe { dealloc(self.entries.cast(), Self::layout()) };
    }
}
