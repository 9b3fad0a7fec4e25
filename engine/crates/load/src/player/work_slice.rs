//! What of a tape one caller plays, and when.

use cachemark_tape::{Lane, Op, Tape, Verb};

/// What of the tape a player plays.
#[derive(Clone, Copy, Debug)]
pub enum WorkSlice {
    /// Each of its keys once, stored with a reply.
    Prefill { first: u64, stride: u64 },
    /// The records of a lane, at most so many of them.
    Lane { lane: Option<Lane>, ops: u64 },
}

impl WorkSlice {
    /// The next operation, and its record's number where it is one of the tape's.
    #[inline]
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
                };
                Some((op, None))
            }
            WorkSlice::Lane { lane, ops } => {
                let lane = lane.as_mut().filter(|_| *ops > 0)?;
                *ops -= 1;
                let record = lane.step().0;
                Some((tape.op(record), Some(record)))
            }
        }
    }
}
