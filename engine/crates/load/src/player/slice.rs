//! A player's state in its current slice, and a slice's result.

/// The state of the current slice.
pub(crate) struct SliceState {
    pub(super) open_loop: bool,
    pub(super) counted_ns: u64,
    /// When the lead-in ends; `u64::MAX` if it is the whole slice.
    pub(super) lead_in_end_ns: u64,
    /// When the counted part of each channel began; `u64::MAX`: it has not.
    pub(super) began_ns: Vec<u64>,
    /// When the part that each channel is in ends: the lead-in, then the first half of the counted part; `u64::MAX`: no
    /// part follows.
    pub(super) next_part_ns: Vec<u64>,
    /// The middle of the counted part; `u64::MAX` in an open loop.
    pub(super) middle_ns: u64,
    /// How many operations of the slice have ended on each channel, and how many of them in the lead-in.
    pub(super) ended_ops: Vec<u64>,
    pub(super) lead_in_ops: Vec<u64>,
    /// When the first half of each channel ended, and its operations, lead-in included; 0: it has not.
    pub(super) half: Vec<(u64, u64)>,
    /// The planned end of the slice.
    pub(super) end_ns: u64,
    /// The last completion on each channel in this slice; 0: none.
    pub(super) last_ns: Vec<u64>,
    /// The time that was played on the tape.
    pub(super) tape_ns: u64,
    pub(super) before: Ended,
}

/// Operations that have ended: counted and ok, counted and failed, and in lead-ins.
#[derive(Clone, Copy, Default)]
pub(super) struct Ended {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) lead_in: u64,
}

/// The result of a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceResult {
    pub ops: u64,
    pub errors: u64,
    pub lead_in_ops: u64,
    /// The sum of the counted parts of callers, and how many callers have operations.
    pub elapsed_ns: u64,
    pub callers: u64,
    /// Closed loop: the operations in the first halves of the counted parts, and the sum of these halves.
    pub half_ops: u64,
    pub half_ns: u64,
}

impl SliceResult {
    /// Add the result of another player.
    pub fn add(&mut self, other: &SliceResult) {
        self.ops += other.ops;
        self.errors += other.errors;
        self.lead_in_ops += other.lead_in_ops;
        self.elapsed_ns += other.elapsed_ns;
        self.callers += other.callers;
        self.half_ops += other.half_ops;
        self.half_ns += other.half_ns;
    }

    /// The mean of the counted parts.
    pub fn mean_elapsed_ns(&self) -> u64 {
        self.elapsed_ns.checked_div(self.callers).unwrap_or(0)
    }

    /// The mean of their first halves.
    pub fn mean_half_ns(&self) -> u64 {
        self.half_ns.checked_div(self.callers).unwrap_or(0)
    }
}

impl SliceState {
    /// Operations on a channel have ended. The first that end after the lead-in are its last ones.
    #[inline]
    pub(crate) fn operations_ended(&mut self, channel: usize, operations: u64, now_ns: u64) {
        self.last_ns[channel] = now_ns;
        self.ended_ops[channel] += operations;
        if now_ns >= self.next_part_ns[channel] {
            self.end_part(channel, now_ns);
        }
    }

    #[cold]
    fn end_part(&mut self, channel: usize, now_ns: u64) {
        let ended_ops = self.ended_ops[channel];
        if self.began_ns[channel] == u64::MAX {
            self.began_ns[channel] = now_ns;
            self.lead_in_ops[channel] = ended_ops;
            self.next_part_ns[channel] = self.middle_ns;
        } else {
            self.half[channel] = (now_ns, ended_ops);
            self.next_part_ns[channel] = u64::MAX;
        }
    }

    /// The first operations are about to be sent. If there was no CPU until now, all of them are counted.
    pub(super) fn look(&mut self, now_ns: u64) {
        if now_ns >= self.lead_in_end_ns {
            self.began_ns.fill(self.lead_in_end_ns);
            self.next_part_ns.fill(self.middle_ns);
        }
    }

    /// The operations in the first halves of the counted parts of channels, and the sum of these halves. Without a
    /// completion after the middle, a half lasts until then.
    pub(super) fn halves(&self, stopped: bool) -> (u64, u64) {
        let half_of = |channel: usize| {
            let counted = self.began_ns[channel] != u64::MAX;
            let since_ns = if counted { self.began_ns[channel] } else { self.lead_in_end_ns };
            let (end_ns, ops) = match self.half[channel] {
                (0, _) if stopped => (self.last_ns[channel], self.ended_ops[channel]),
                (0, _) => (self.middle_ns, self.ended_ops[channel]),
                half => half,
            };
            let ops = if counted { ops - self.lead_in_ops[channel] } else { 0 };
            (ops, end_ns.saturating_sub(since_ns))
        };
        let halves = (0..self.half.len()).map(half_of);
        halves.fold((0, 0), |sum, half| (sum.0 + half.0, sum.1 + half.1))
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
