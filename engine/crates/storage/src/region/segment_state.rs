//! The use of a segment.

/// The states of a segment. A segment of a queue is open or full.
pub mod state {
    /// Free, without memory pages: never used, or returned to the system.
    pub const UNBACKED: u32 = 0;
    /// Free, with memory pages.
    pub const FREE: u32 = 1;
    /// Its items are not in the table any more, but readers may still see them.
    pub const RETIRED: u32 = 2;
    /// Part of the small queue: new items.
    pub const SMALL: u32 = 3;
    /// Part of the main queue: items that were read.
    pub const MAIN: u32 = 4;
    /// The second or a later segment of a large item.
    pub const CONTINUATION: u32 = 5;
}

/// The queues of S3-FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    Small,
    Main,
}

impl Queue {
    pub fn state(self) -> u32 {
        match self {
            Queue::Small => state::SMALL,
            Queue::Main => state::MAIN,
        }
    }
}

/// How many segments are in which state.
#[derive(Clone, Copy, Default)]
pub struct SegmentCounts {
    pub used: usize,
    pub free: usize,
    pub retired: usize,
    pub small: usize,
    pub main: usize,
    /// Bytes of full segments that belong to no live item.
    pub dead_bytes: usize,
}
