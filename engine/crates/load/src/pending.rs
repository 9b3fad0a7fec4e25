//! One operation on its way: when it was due, when it left, what its replies came to so far.

use cachemark_planted::{Bug, planted};
use cachemark_tape::Op;

use crate::tally::{Failure, Figures, Stamps, Tally};

/// An operation that was handed to a connection.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub op: Op,
    /// When it was meant to start; in a closed loop that is when it was sent.
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) open_loop: bool,
    /// A barrier is not an operation: it ends those that have no reply.
    pub(crate) barrier: bool,
    /// Keys of the run that are answered (mset) or passed (mget).
    pub(crate) passed: u16,
    pub(crate) wrong: bool,
    pub(crate) failure: Option<Failure>,
    /// The token that a cas has read, and whether its second command is under way.
    pub(crate) token: Option<u64>,
    pub(crate) swapping: bool,
    pub(crate) figures: Figures,
}

impl Pending {
    /// An operation that is to be sent as soon as the bytes before it are.
    pub fn closed(op: Op) -> Pending {
        Pending::new(op, 0, false)
    }

    /// An operation that was due at an instant, however late it is sent.
    pub fn open(op: Op, due_ns: u64) -> Pending {
        Pending::new(op, due_ns, true)
    }

    fn new(op: Op, due_ns: u64, open_loop: bool) -> Pending {
        Pending {
            op,
            due_ns,
            sent_ns: 0,
            open_loop,
            barrier: false,
            passed: 0,
            wrong: false,
            failure: None,
            token: None,
            swapping: false,
            figures: Figures::default(),
        }
    }

    /// Whether the first command of a cas went well and its second is to follow.
    pub(crate) fn has_to_swap(&self) -> bool {
        self.token.is_some() && !self.swapping && !self.wrong && self.failure.is_none()
    }

    #[inline]
    pub(crate) fn stamps(&self, now_ns: u64) -> Stamps {
        let from_due = self.open_loop && !planted(Bug::SendStamp);
        Stamps {
            verb: self.op.verb,
            noreply: self.op.noreply,
            due_ns: if from_due { self.due_ns } else { self.sent_ns },
            sent_ns: self.sent_ns,
            now_ns,
        }
    }

    /// Note that it goes out now.
    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, tally: &mut Tally) {
        if self.sent_ns != 0 {
            return; // the second command of a cas: the operation began with its first
        }
        self.sent_ns = now_ns;
        if self.barrier {
            tally.barriers += 1;
            return;
        }
        tally.begun(self.op.verb, self.op.noreply);
        if self.open_loop {
            tally.lag.saturating_record(now_ns.saturating_sub(self.due_ns).max(1));
        }
    }
}
