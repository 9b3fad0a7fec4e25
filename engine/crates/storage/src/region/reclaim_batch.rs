//! How many segments are emptied at a time.
//!
//! One is best, because a segment that is emptied early holds nothing. But if a writer had to wait for a
//! reader (one that the kernel had preempted), the next batch is twice as large: then one wait frees
//! memory for more items. If it did not wait, the next batch is smaller by one.

/// A batch is at most one in this number of all segments.
const MAX_SHARE: usize = 4;

/// The size of the next batch.
#[derive(Debug, Default)]
pub struct ReclaimBatch {
    size: usize,
    waited: bool,
}

impl ReclaimBatch {
    /// A writer had to wait for readers.
    pub fn note_wait(&mut self) {
        self.waited = true;
    }

    /// How many segments to empty together.
    pub fn size(&self) -> usize {
        self.size.max(1)
    }

    /// Segments are emptied when fewer than this are free: live items need room to move to.
    pub fn low_water_mark(&self) -> usize {
        (self.size() / 2).max(1)
    }

    /// Adjust the size to the waits since the last call. `allowed` is the number of all segments.
    pub fn adjust(&mut self, allowed: usize) {
        let size = if self.waited { 2 * self.size() } else { self.size() - 1 };
        self.size = size.clamp(1, (allowed / MAX_SHARE).max(1));
        self.waited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_make_batches_larger() {
        let mut batch = ReclaimBatch::default();
        let mut next = |waited: bool| {
            if waited {
                batch.note_wait();
            }
            batch.adjust(50);
            batch.size()
        };
        assert_eq!([false, true, true, true].map(&mut next), [1, 2, 4, 8]);
        assert_eq!([true, true, false, true].map(&mut next), [12, 12, 11, 12]);
        assert_eq!([false; 12].map(&mut next)[9..], [2, 1, 1]);
    }
}
