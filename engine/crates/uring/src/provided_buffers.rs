//! Buffers that the kernel fills: it takes one for each receive and returns its number.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd};
use io_uring::{Submitter, opcode, squeue};

/// The only buffer group of a ring.
pub const BUFFER_GROUP: u16 = 0;
const COUNT: u16 = 256;
const BUFFER_BYTES: usize = 8 * 1024;
const PAGE_BYTES: usize = 4096;

/// Buffers, and the ring in which the kernel finds the free ones.
pub struct ProvidedBuffers {
    entries: *mut BufRingEntry,
    buffers: Vec<u8>,
    /// How many of them the kernel has got so far.
    given: u16,
    tail: u16,
}

// SAFETY: the entries are memory of its own, which only its methods and the kernel access.
unsafe impl Send for ProvidedBuffers {}

impl ProvidedBuffers {
    fn layout() -> Layout {
        let bytes = usize::from(COUNT) * size_of::<BufRingEntry>();
        Layout::from_size_align(bytes, PAGE_BYTES).expect("a small ring")
    }

    /// How many buffers there are at most.
    pub const COUNT: u16 = COUNT;

    /// Register buffers with a ring, and give the kernel `first` of them. They must live as long as the ring.
    pub fn register(to: &Submitter<'_>, first: u16) -> io::Result<ProvidedBuffers> {
        // SAFETY: the layout is not empty.
        let entries = unsafe { alloc_zeroed(Self::layout()) }.cast::<BufRingEntry>();
        if entries.is_null() {
            handle_alloc_error(Self::layout());
        }
        let buffers = vec![0; usize::from(COUNT) * BUFFER_BYTES];
        let mut provided = ProvidedBuffers { entries, buffers, given: 0, tail: 0 };
        // SAFETY: there are COUNT entries, aligned to a page, and they outlive the ring: the owner of both drops
        // the ring first.
        unsafe { to.register_buf_ring_with_flags(entries as u64, COUNT, BUFFER_GROUP, 0)? };
        provided.give(first);
        Ok(provided)
    }

    /// Give the kernel `more` more buffers, if there are more. It uses all that it has in turn, so that each takes
    /// memory.
    pub fn give(&mut self, more: u16) {
        let first = self.given;
        self.given = first.saturating_add(more).min(COUNT);
        (first..self.given).for_each(|number| self.release(number));
    }

    /// The bytes that the kernel wrote to a buffer.
    pub fn received(&self, number: u16, bytes: usize) -> &[u8] {
        let begin = usize::from(number) * BUFFER_BYTES;
        &self.buffers[begin..begin + bytes]
    }

    /// Return a buffer to the kernel.
    pub fn release(&mut self, number: u16) {
        let begin = usize::from(number) * BUFFER_BYTES;
        let index = usize::from(self.tail % COUNT);
        // SAFETY: `index` is below COUNT, and the kernel does not read the entry before the tail has passed it.
        // The tail is a field of the first entry that is unused otherwise.
        unsafe {
            let entry = &mut *self.entries.add(index);
            entry.set_addr(self.buffers.as_mut_ptr().add(begin) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(number);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

/// A receive that completes once, into one of the buffers.
pub fn receive_once(socket: Fd) -> squeue::Entry {
    opcode::Recv::new(socket, ptr::null_mut(), BUFFER_BYTES as u32)
        .buf_group(BUFFER_GROUP)
        .build()
        .flags(squeue::Flags::BUFFER_SELECT)
}

impl Drop for ProvidedBuffers {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the ring that used it does not exist any more.
        unsafe { dealloc(self.entries.cast(), Self::layout()) };
    }
}
