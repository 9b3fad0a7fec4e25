//! The part of a tape that one player plays.

use cachemark_tape::{Lane, Op, Tape, Verb};

/// The part of a tape that one player plays.
#[derive(Clone, Copy, Debug)]
pub enum WorkSlice {
    /// Store each key once, with a reply: every `stride`-th key from `first` on.
    Prefill { first: u64, stride: u64 },
    /// The records of a lane, at most `ops` of them.
    Lane { lane: Option<Lane>, ops: u64 },
}

impl WorkSlice {
    /// Whether there are no more operations.
    pub(crate) fn exhausted(&self, tape: &Tape) -> bool {
        match self {
            WorkSlice::Prefill { first, .. } => *first >= u64::from(tape.prefill_count()),
            WorkSlice::Lane { lane, ops } => lane.is_none() || *ops == 0,
        }
    }

    /// The next operation, and the number of its record if it comes from one.
    #[inline(always)]
    pub(crate) fn take(&mut self, tape: &Tape) -> Option<(Op, Option<u64>)> {
        match self {
            WorkSlice::Prefill { first, stride } => {
                let k = *first;
                if k >= u64::from(tape.prefill_count()) {
                    return None;
                }
                *first += *stride;
                let op = Op {
                    verb: Verb::Set,
                    noreply: false,
                    run: 1,
                    key: k as u32,
                    length: tape.value_length(k as u32),
                    exptime_s: tape.exptime_s(),
                    generation: 0,
                };
                Some((op, None))
            }
            WorkSlice::Lane { lane, ops } => {
                let lane = lane.as_mut().filter(|_| *ops > 0)?;
                *ops -= 1;
                let record = lane.next_record().0;
                Some((tape.op(record), Some(record)))
            }
        }
    }
}
