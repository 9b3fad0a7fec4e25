//! The course of a window: equal slices of time, with the operations that ended in each and their
//! response times. It shows whether a window was steady, or drifted, jumped or was still warming up.

/// The number of slices is fixed, so that recording never allocates. When all are used, pairs of slices
/// are merged into slices of twice the length.
const SLICE_COUNT: usize = 256;
/// The initial length of a slice. Every length is this times a power of two.
const MIN_SLICE_NS: u64 = 1_000_000;

/// The operations that ended in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineSlice {
    pub ok: u64,
    /// The sum of the response times.
    pub response_ns: u64,
}

impl TimelineSlice {
    fn add(&mut self, other: TimelineSlice) {
        self.ok += other.ok;
        self.response_ns += other.response_ns;
    }
}

#[derive(Clone, Debug)]
pub struct Timeline {
    start_ns: u64,
    slice_ns: u64,
    /// The current slice, and when it ends.
    current: usize,
    end_ns: u64,
    slices: Box<[TimelineSlice; SLICE_COUNT]>,
}

impl Timeline {
    /// The timeline of a window that starts at `start_ns`.
    pub fn new(start_ns: u64) -> Timeline {
        Timeline {
            start_ns,
            slice_ns: MIN_SLICE_NS,
            current: 0,
            end_ns: start_ns.saturating_add(MIN_SLICE_NS),
            slices: Box::new([TimelineSlice::default(); SLICE_COUNT]),
        }
    }

    /// An operation ended in the current slice.
    #[inline]
    pub fn record_completion(&mut self, response_ns: u64) {
        self.slices[self.current].add(TimelineSlice { ok: 1, response_ns });
    }

    /// Make the slice that contains `now_ns` the current one. Returns its end. Calls must be in order
    /// of time.
    pub fn advance_to(&mut self, now_ns: u64) -> u64 {
        if now_ns >= self.end_ns {
            self.advance(now_ns);
        }
        self.end_ns
    }

    fn advance(&mut self, now_ns: u64) {
        while (now_ns - self.start_ns) / self.slice_ns >= SLICE_COUNT as u64 {
            self.halve_resolution();
        }
        self.current = ((now_ns - self.start_ns) / self.slice_ns) as usize;
        self.end_ns = self.start_ns + (self.current as u64 + 1) * self.slice_ns;
    }

    fn halve_resolution(&mut self) {
        for i in 0..SLICE_COUNT / 2 {
            let mut both = self.slices[2 * i];
            both.add(self.slices[2 * i + 1]);
            self.slices[i] = both;
        }
        self.slices[SLICE_COUNT / 2..].fill(TimelineSlice::default());
        self.slice_ns *= 2;
        self.current /= 2;
    }

    /// Add the timeline of another player of the same window.
    pub fn add(&mut self, other: &Timeline) {
        let mut other = other.clone();
        while self.slice_ns < other.slice_ns {
            self.halve_resolution();
        }
        while other.slice_ns < self.slice_ns {
            other.halve_resolution();
        }
        self.current = self.current.max(other.current);
        for (mine, theirs) in self.slices.iter_mut().zip(other.slices.iter()) {
            mine.add(*theirs);
        }
    }

    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// The slices up to the current one.
    pub fn slices(&self) -> &[TimelineSlice] {
        &self.slices[..=self.current]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(timeline: &mut Timeline, now_ns: u64, response_ns: u64) {
        timeline.advance_to(now_ns);
        timeline.record_completion(response_ns);
    }

    /// One operation per millisecond. Each took as many ns as milliseconds had passed.
    fn steady(from_ms: u64, to_ms: u64) -> Timeline {
        let mut timeline = Timeline::new(7);
        (from_ms..to_ms).for_each(|ms| ended(&mut timeline, 7 + ms * MIN_SLICE_NS, ms));
        timeline
    }

    #[test]
    fn a_short_window_has_the_shortest_slices() {
        let timeline = steady(0, 100);
        assert_eq!(timeline.slice_ns(), MIN_SLICE_NS);
        let expected: Vec<_> =
            (0..100).map(|ms| TimelineSlice { ok: 1, response_ns: ms }).collect();
        assert_eq!(timeline.slices(), expected);
    }

    #[test]
    fn a_long_window_loses_nothing_but_resolution() {
        let timeline = steady(0, 1000);
        assert_eq!(timeline.slice_ns(), 4 * MIN_SLICE_NS);
        assert_eq!(timeline.slices().len(), 250);
        assert!(timeline.slices().iter().all(|slice| slice.ok == 4));
        assert_eq!(timeline.slices()[249].response_ns, 996 + 997 + 998 + 999);
    }

    #[test]
    fn a_pause_leaves_empty_slices() {
        let mut timeline = Timeline::new(0);
        ended(&mut timeline, 10, 1);
        ended(&mut timeline, 5 * MIN_SLICE_NS, 2);
        let ok: Vec<_> = timeline.slices().iter().map(|slice| slice.ok).collect();
        assert_eq!(ok, [1, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn players_of_different_lengths_are_added() {
        let mut sum = steady(0, 100);
        sum.add(&steady(0, 1000));
        assert_eq!(sum.slice_ns(), 4 * MIN_SLICE_NS);
        let mut other = steady(0, 1000);
        other.add(&steady(0, 100));
        assert_eq!(sum.slices(), other.slices());
        assert_eq!(sum.slices()[0].ok, 8);
        assert_eq!(sum.slices().iter().map(|slice| slice.ok).sum::<u64>(), 1100);
    }
}
