//! Pages of memory, the chunks that classes cut them into, and the items in these.

use std::collections::VecDeque;

use super::{COLD, HOT, Memcached, Release, TRIES};
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

    fn item(&mut self, chunk: u32) -> &mut u32 {
        &mut self.items[page_of(chunk) as usize][(chunk % MOST_CHUNKS) as usize]
    }

    pub(super) fn chunks(&self, pages: &VecDeque<u32>) -> u64 {
        pages.iter().map(|page| self.items[*page as usize].len() as u64).sum()
    }

    /// A page for a class that has some or none.
    fn take(&mut self, has_some: bool) -> Option<u32> {
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
}

impl Memcached {
    /// Chunks for an item of this class. `None` if no room can be made.
    pub(super) fn take_chunks(&mut self, class: usize, number: u8) -> Option<Chunks> {
        let first = self.take_chunk(class)?;
        if number == 1 {
            return Some([first, NO_CHUNK]);
        }
        let second = self.take_chunk(class);
        if second.is_none() {
            self.classes[class].free.push(first);
        }
        Some([first, second?])
    }

    fn take_chunk(&mut self, class: usize) -> Option<u32> {
        // One key may stand for many, and so need many pages.
        while self.classes[class].free.is_empty() && self.add_page(class) {}
        for _ in 0..TRIES * 2 {
            if let Some(chunk) = self.classes[class].free.pop() {
                return Some(chunk);
            }
            self.evict(class);
        }
        None
    }

    /// Evict the oldest of COLD, or else make COLD get an item.
    fn evict(&mut self, class: usize) {
        match self.oldest(class, COLD) {
            Some(item) => {
                self.classes[class].evicted += u64::from(!self.has_expired(item));
                self.unlink(item);
            }
            None => drop(self.pull(class, HOT, 0, u32::MAX)),
        }
    }

    /// Give a class a page, if there is one or if it has none.
    fn add_page(&mut self, class: usize) -> bool {
        let page = self.pages.take(!self.classes[class].pages.is_empty());
        page.is_some_and(|page| {
            self.put_page(class, page);
            true
        })
    }

    fn put_page(&mut self, class: usize, page: u32) {
        let of = &mut self.classes[class];
        let chunks = |pages: usize| {
            (pages as f64 * f64::from(of.chunks_of_page) * self.part).round().max(1.0) as u32
        };
        let has = self.pages.chunks(&of.pages) as u32;
        let chunks = chunks(of.pages.len() + 1).saturating_sub(has);
        self.pages.items[page as usize] = vec![NO_ITEM; chunks as usize];
        of.free.extend((0..chunks).map(|chunk| page * MOST_CHUNKS + chunk));
        of.pages.push_back(page);
    }

    /// Take the oldest page from a class, for another one, or for whoever needs one first.
    pub(super) fn give_up_page(&mut self, from: usize, to: Option<usize>) {
        let Some(page) = self.classes[from].pages.pop_front() else { return };
        self.forget_free(from, page);
        let chunks = self.pages.items[page as usize].len() as u32;
        for chunk in (0..chunks).map(|place| page * MOST_CHUNKS + place) {
            self.leave_chunk(from, chunk);
        }
        self.forget_free(from, page);
        match to {
            Some(to) => self.put_page(to, page),
            None => self.pages.free.push_back(page),
        }
    }

    fn forget_free(&mut self, class: usize, page: u32) {
        self.classes[class].free.retain(|chunk| page_of(*chunk) != page);
    }

    /// Move the item of a chunk into a free one of its class; into the chunk of the oldest item, if this release does so.
    fn leave_chunk(&mut self, class: usize, chunk: u32) {
        for _ in 0..TRIES * 2 {
            let item = *self.pages.item(chunk);
            if item == NO_ITEM || self.has_expired(item) {
                break;
            }
            match self.classes[class].free.pop() {
                // It goes with the page.
                Some(free) if page_of(free) == page_of(chunk) => {}
                Some(free) => {
                    let chunks = &mut self.items[item as usize].chunks;
                    *chunks = chunks.map(|of| if of == chunk { free } else { of });
                    *self.pages.item(free) = item;
                    return;
                }
                None if self.release == Release::Since1634 => self.evict(class),
                None => break,
            }
        }
        let item = *self.pages.item(chunk);
        if item != NO_ITEM {
            self.unlink(item);
        }
    }
}

fn page_of(chunk: u32) -> u32 {
    chunk / MOST_CHUNKS
}
