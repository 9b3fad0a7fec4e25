//! What a player knows of its current slice, and what a slice came to.

/// What is known of the current slice.
pub(crate) struct SliceState {
    pub(super) open_loop: bool,
    pub(super) counted_ns: u64,
    /// When the lead-in ends; `u64::MAX` if it is the whole slice.
    pub(super) lead_in_end_ns: u64,
    /// When the counted part of each channel began; `u64::MAX`: it has not.
    pub(super) began_ns: Vec<u64>,
    /// The planned end of the slice.
    pub(super) end_ns: u64,
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
    /// The sum of the counted parts of callers, and how many callers have operations.
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

    /// The mean of the counted parts.
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

    /// The first operations are about to be sent. If there was no CPU until now, all of them are counted.
    pub(super) fn look(&mut self, now_ns: u64) {
        if now_ns >= self.lead_in_end_ns {
            self.began_ns.fill(self.lead_in_end_ns);
        }
    }

    /// The sum of the counted parts of channels.
    pub(super) fn elapsed_ns(&self, stopped: bool) -> u64 {
        let parts = self.last_ns.iter().zip(&self.began_ns);
        // A part is not over before the slice is, so that the time without a CPU belongs to it.
        let end_ns = if stopped { 0 } else { self.end_ns };
        let part_ns = |(last_ns, began_ns): (&u64, &u64)| {
            let idle = *began_ns == u64::MAX; // no completion after the lead-in
            let since_ns = if idle { self.lead_in_end_ns } else { *began_ns };
            end_ns.max(*last_ns).saturating_sub(since_ns)
        };
        parts.map(part_ns).sum()
    }
}
