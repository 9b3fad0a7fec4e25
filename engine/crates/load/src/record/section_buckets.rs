//! The sections of a window while one player records it.

use super::buckets::LatencyBuckets;

/// A section must be long compared to the time over which requests influence each other, so there are
/// few; Student's t needs at least this many. Schmeiser, Operations Research 30 (1982).
pub const SECTION_COUNT: usize = 10;

/// The sections of one player's window during recording.
///
/// This costs nothing per operation: at the end of a section, the buckets of all kinds are swapped with
/// empty ones that were allocated before the window.
#[derive(Clone, Debug)]
pub(crate) struct SectionBuckets {
    pub length_ns: u64,
    /// When the current section ends; never, for the last one.
    pub end_ns: u64,
    pub current: usize,
    /// Successful operations up to the end of each finished section.
    pub ok: [u64; SECTION_COUNT],
    /// For each finished section: the kinds and their buckets. Until then the buckets are empty.
    pub section_times: Vec<Vec<(usize, LatencyBuckets)>>,
}

impl SectionBuckets {
    /// Sections of `length_ns` for these kinds, in a window that starts at `start_ns`.
    pub fn new(start_ns: u64, length_ns: u64, kinds: &[usize]) -> SectionBuckets {
        let empty = || kinds.iter().map(|kind| (*kind, LatencyBuckets::new())).collect();
        SectionBuckets {
            length_ns,
            end_ns: start_ns + length_ns,
            current: 0,
            ok: [0; SECTION_COUNT],
            section_times: (1..SECTION_COUNT).map(|_| empty()).collect(),
        }
    }

    /// A section has ended, with `ok` successful operations so far. The caller swaps the buckets of
    /// each kind with those that this returns.
    pub fn next(&mut self, ok: u64) -> &mut [(usize, LatencyBuckets)] {
        let ended = self.current;
        self.ok[ended] = ok;
        self.current += 1;
        let last = self.current + 1 == SECTION_COUNT;
        self.end_ns = if last { u64::MAX } else { self.end_ns + self.length_ns };
        &mut self.section_times[ended]
    }

    /// The buckets of all finished sections, with their kinds.
    pub fn past(&self) -> impl Iterator<Item = &(usize, LatencyBuckets)> {
        self.section_times[..self.current].iter().flatten()
    }
}
