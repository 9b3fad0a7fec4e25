//! The program's allocator: the system's, with long blocks where copies between them are quick.

use std::alloc::{GlobalAlloc, Layout, System};

/// From this size on, glibc may copy by `rep movsb`.
const LONG_BYTES: usize = 4096;
/// The CPUs of AMD that have it (Zen 3 and 4) copy up to 30 times slower if the destination lies 1 to 63 bytes behind
/// the source, modulo 4096: then a record of TLS, 5 or 13 bytes behind the beginning of a block, took longer to copy
/// to the block behind it than to decrypt.
const ALIGN_BYTES: usize = 128;

/// From this size on, the kernel moves a block that grows.
const MOVED_BYTES: usize = 128 * 1024;

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The layout that is asked of the system. Blocks are freed without their alignment.
fn placed(layout: Layout) -> Layout {
    if layout.size() < LONG_BYTES {
        return layout;
    }
    layout.align_to(ALIGN_BYTES).unwrap_or(layout)
}

// SAFETY: the system's allocator does all of it, with the caller's layout or one of a larger alignment. On Unix it frees
// and resizes blocks of any alignment alike. Where the kernel can move or clear pages, a block lies where it may.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc(placed(layout)) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller guarantees.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller guarantees.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !(LONG_BYTES..MOVED_BYTES).contains(&bytes) {
            // SAFETY: as the caller guarantees.
            return unsafe { System.realloc(at, layout, bytes) };
        }
        // SAFETY: the caller guarantees that `bytes` fit its alignment. Blocks of before and now do not overlap.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(at, layout.size().min(bytes));
                self.dealloc(at, layout);
            }
            moved
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_and_grown_long_blocks_lie_at_a_multiple() {
        let layout = Layout::from_size_align(16, 8).expect("a layout");
        for bytes in [LONG_BYTES, 16 * 1024 + 5, MOVED_BYTES - 1] {
            // SAFETY: each block is freed once, with its own layout.
            unsafe {
                let at = Allocator.alloc(layout);
                at.write_bytes(7, 16);
                let grown = Allocator.realloc(at, layout, bytes);
                let grown_layout = Layout::from_size_align(bytes, 8).expect("a layout");
                let new = Allocator.alloc(grown_layout);
                assert!(
                    [grown, new].iter().all(|block| block.addr() % ALIGN_BYTES == 0),
                    "{bytes}"
                );
                assert_eq!(std::slice::from_raw_parts(grown, 16), [7; 16]);
                Allocator.dealloc(new, grown_layout);
                let back = Allocator.realloc(grown, grown_layout, 16);
                assert_eq!(std::slice::from_raw_parts(back, 16), [7; 16]);
                Allocator.dealloc(back, layout);
            }
        }
    }
}
