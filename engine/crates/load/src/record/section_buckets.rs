//! A window in parts, while one player records it.

use super::buckets::LatencyBuckets;

/// Few enough that a part is long beside what makes requests resemble each other, and as many as
/// Student's t needs: Schmeiser, Operations Research 30 (1982).
pub const SECTIONS: usize = 10;

/// The parts of one player's window while it records.
///
/// An operation costs nothing more: where a part ends, the times of all kinds change places
/// with empty ones that were made before the window.
#[derive(Clone, Debug)]
pub(crate) struct SectionBuckets {
    pub length_ns: u64,
    /// When the part that is going on ends; never in the last.
    pub end_ns: u64,
    pub current: usize,
    /// Operations by the end of each part that has ended.
    pub ok: [u64; SECTIONS],
    /// For each end of a part the kinds and their times: empty before, the part's after it.
    pub section_times: Vec<Vec<(usize, LatencyBuckets)>>,
}

impl SectionBuckets {
    /// Of a window that begins then, whose parts are so long and whose kinds are these.
    pub fn new(start_ns: u64, length_ns: u64, kinds: &[usize]) -> SectionBuckets {
        let empty = || kinds.iter().map(|kind| (*kind, LatencyBuckets::new())).collect();
        SectionBuckets {
            length_ns,
            end_ns: start_ns + length_ns,
            current: 0,
            ok: [0; SECTIONS],
            section_times: (1..SECTIONS).map(|_| empty()).collect(),
        }
    }

    /// A part has ended, after which so many operations are done: what its kinds recorded is to be
    /// exchanged for what is given here.
    pub fn next(&mut self, ok: u64) -> &mut [(usize, LatencyBuckets)] {
        let ended = self.current;
        self.ok[ended] = ok;
        self.current += 1;
        let last = self.current + 1 == SECTIONS;
        self.end_ns = if last { u64::MAX } else { self.end_ns + self.length_ns };
        &mut self.section_times[ended]
    }

    /// What was recorded in the parts that have ended, with its kind.
    pub fn past(&self) -> impl Iterator<Item = &(usize, LatencyBuckets)> {
        self.section_times[..self.current].iter().flatten()
    }
}
