//! Pages of memory, the chunks that classes cut them into, and the items in these.

use std::collections::VecDeque;
use std::ops::Range;

use crate::list::END;

/// The most chunks of a page, so that a chunk's number tells its page.
const MOST_CHUNKS: u32 = 1 << 14;
/// No item is in a chunk.
pub(super) const NO_ITEM: u32 = END;
pub(super) const NO_CHUNK: u32 = u32::MAX;

/// The chunks of an item: a large one has two.
pub(super) type Chunks = [u32; 2];

/// All pages.
#[derive(Clone)]
pub(super) struct Pages {
    /// Pages that were never given to a class.
    left: u32,
    /// Pages that a class gave up.
    free: VecDeque<u32>,
    /// For each page, the items in its chunks.
    items: Vec<Vec<u32>>,
}

impl Pages {
    pub(super) fn new(left: u32) -> Pages {
        Pages { left, free: VecDeque::new(), items: Vec::new() }
    }

    /// No page is left that was never given away.
    pub(super) fn all_used(&self) -> bool {
        self.left == 0
    }

    /// An item is in these chunks.
    pub(super) fn hold(&mut self, chunks: Chunks, item: u32) {
        for chunk in chunks.into_iter().filter(|chunk| *chunk != NO_CHUNK) {
            *self.item(chunk) = item;
        }
    }

    pub(super) fn item(&mut self, chunk: u32) -> &mut u32 {
        &mut self.items[page_of(chunk) as usize][(chunk % MOST_CHUNKS) as usize]
    }

    pub(super) fn chunks(&self, pages: &VecDeque<u32>) -> u64 {
        pages.iter().map(|page| self.items[*page as usize].len() as u64).sum()
    }

    /// A page for a class that has some or none.
    pub(super) fn take(&mut self, has_some: bool) -> Option<u32> {
        if let Some(page) = self.free.pop_front() {
            return Some(page);
        }
        if self.left == 0 && has_some {
            return None;
        }
        self.left = self.left.saturating_sub(1);
        self.items.push(Vec::new());
        Some(self.items.len() as u32 - 1)
    }

    /// Cut a page into free chunks.
    pub(super) fn cut(&mut self, page: u32, chunks: u32) {
        self.items[page as usize] = vec![NO_ITEM; chunks as usize];
    }

    /// The numbers of a page's chunks.
    pub(super) fn chunks_of(&self, page: u32) -> Range<u32> {
        let first = page * MOST_CHUNKS;
        first..first + self.items[page as usize].len() as u32
    }

    /// A class has given a page up.
    pub(super) fn give_back(&mut self, page: u32) {
        self.free.push_back(page);
    }
}

pub(super) fn page_of(chunk: u32) -> u32 {
    chunk / MOST_CHUNKS
}
