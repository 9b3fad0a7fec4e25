//! The chunks of items: a class takes them from its pages, and moves items where it gives up a page.

use super::pages::{Chunks, NO_CHUNK, NO_ITEM, page_of};
use super::{COLD, HOT, Memcached, Release, TRIES};

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
        self.pages.cut(page, chunks);
        of.free.extend(self.pages.chunks_of(page));
        of.pages.push_back(page);
    }

    /// Take the oldest page from a class, for another one, or for whoever needs one first.
    pub(super) fn give_up_page(&mut self, from: usize, to: Option<usize>) {
        let Some(page) = self.classes[from].pages.pop_front() else { return };
        self.forget_free(from, page);
        for chunk in self.pages.chunks_of(page) {
            self.leave_chunk(from, chunk);
        }
        self.forget_free(from, page);
        match to {
            Some(to) => self.put_page(to, page),
            None => self.pages.give_back(page),
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
