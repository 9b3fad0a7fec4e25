//! What a player knows of its current slice, and what a slice came to.

/// What is known of the current slice.
pub(crate) struct SliceState {
    pub(super) open_loop: bool,
    pub(super) counted_ns: u64,
    /// When the lead-in ends; `u64::MAX` if it is the whole slice.
    pub(super) lead_in_end_ns: u64,
    /// When the counted part of each channel began; `u64::MAX`: it has not.
    pub(super) began_ns: Vec<u64>,
    /// The last completion on each channel in this slice; 0: none.
    pub(super) last_ns: Vec<u64>,
    /// The time that was played on the tape.
    pub(super) tape_ns: u64,
    pub(super) before: Ended,
}

/// Operations that have ended: counted and ok, counted and failed, and those of lead-ins.
#[derive(Clone, Copy, Default)]
pub(super) struct Ended {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) lead_in: u64,
}

/// What a slice came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceResult {
    pub ops: u64,
    pub errors: u64,
    pub lead_in_ops: u64,
    /// The sum of the counted times of callers, and how many callers played.
    pub elapsed_ns: u64,
    pub callers: u64,
}

impl SliceResult {
    /// Add the result of another player.
    pub fn add(&mut self, other: &SliceResult) {
        self.ops += other.ops;
        self.errors += other.errors;
        self.lead_in_ops += other.lead_in_ops;
        self.elapsed_ns += other.elapsed_ns;
        self.callers += other.callers;
    }

    /// The mean of the counted times.
    pub fn mean_elapsed_ns(&self) -> u64 {
        self.elapsed_ns.checked_div(self.callers).unwrap_or(0)
    }
}

impl SliceState {
    /// Operations on a channel have ended. The first that end after the lead-in are its last ones.
    #[inline]
    pub(crate) fn operations_ended(&mut self, channel: usize, now_ns: u64) {
        self.last_ns[channel] = now_ns;
        if self.began_ns[channel] == u64::MAX && now_ns >= self.lead_in_end_ns {
            self.began_ns[channel] = now_ns;
        }
    }

    /// The sum of the counted times of channels, and how many played.
    pub(super) fn elapsed_ns(&self) -> (u64, u64) {
        let played = self.last_ns.iter().zip(&self.began_ns).filter(|(last_ns, _)| **last_ns > 0);
        let times = played.map(|(last_ns, began_ns)| last_ns.saturating_sub(*began_ns));
        times.fold((0, 0), |(sum, count), time_ns| (sum + time_ns, count + 1))
    }
}
