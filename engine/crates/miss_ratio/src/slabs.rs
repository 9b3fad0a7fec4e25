//! How memcached charges an item: its header, and the chunk of its slab class.

/// The header of an item, with its cas number.
pub const ITEM_HEADER_BYTES: u32 = 48 + 8;
const PAGE_BYTES: u32 = 1 << 20;
const LARGEST_CHUNK_BYTES: u32 = PAGE_BYTES / 2;
const SMALLEST_CHUNK_BYTES: u32 = 96;
const FACTOR: f64 = 1.25;
/// memcached refuses larger items by default.
const LARGEST_ITEM_BYTES: u32 = PAGE_BYTES;
/// Pointers from one chunk of a large item to the next.
const CHUNK_HEADER_BYTES: u32 = 48;

/// The bytes of an item: header, key with its end, value with its end.
pub fn item_bytes(key_bytes: u8, value_bytes: u32) -> u32 {
    ITEM_HEADER_BYTES + u32::from(key_bytes) + 1 + value_bytes.saturating_add(2).min(1 << 30)
}

/// Items of a range of sizes: each takes a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlabClass {
    pub chunk_bytes: u32,
    pub chunks_of_page: u32,
}

/// memcached's slab classes, with its defaults: factor 1.25, pages of 1 MiB, chunks of at most 512 KiB.
#[derive(Clone, Debug)]
pub struct SlabClasses {
    classes: Vec<SlabClass>,
}

impl Default for SlabClasses {
    fn default() -> SlabClasses {
        let class =
            |chunk_bytes| SlabClass { chunk_bytes, chunks_of_page: PAGE_BYTES / chunk_bytes };
        let (mut classes, mut size) = (Vec::new(), SMALLEST_CHUNK_BYTES);
        while f64::from(size) < f64::from(LARGEST_CHUNK_BYTES) / FACTOR {
            size = size.next_multiple_of(8);
            classes.push(class(size));
            size = (f64::from(size) * FACTOR) as u32;
        }
        classes.push(class(LARGEST_CHUNK_BYTES));
        SlabClasses { classes }
    }
}

impl SlabClasses {
    pub fn all(&self) -> &[SlabClass] {
        &self.classes
    }

    /// The class of an item, by its number in `all`. `None` if memcached refuses the item.
    pub fn class_of(&self, item_bytes: u32) -> Option<usize> {
        if item_bytes > LARGEST_ITEM_BYTES {
            return None;
        }
        let place = self.classes.partition_point(|class| class.chunk_bytes < item_bytes);
        Some(place.min(self.classes.len() - 1))
    }

    /// How many chunks of its class an item takes: a large one two. memcached takes a smaller one for the rest of it.
    pub fn chunks_of(&self, item_bytes: u32) -> u8 {
        if item_bytes > LARGEST_CHUNK_BYTES { 2 } else { 1 }
    }

    /// The bytes that an item takes: its chunk; a large item has several. `None` if memcached refuses it.
    pub fn charged_bytes(&self, item_bytes: u32) -> Option<u32> {
        let class = self.classes[self.class_of(item_bytes)?];
        if item_bytes <= class.chunk_bytes {
            return Some(class.chunk_bytes);
        }
        let rest = item_bytes - LARGEST_CHUNK_BYTES + CHUNK_HEADER_BYTES;
        let last = self.classes[self.class_of(rest.min(LARGEST_CHUNK_BYTES))?];
        Some(LARGEST_CHUNK_BYTES + last.chunk_bytes)
    }
}
