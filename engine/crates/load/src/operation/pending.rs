//! One operation on its way: when it was due, when it left, what its replies came to so far.

use cachemark_planted::{Bug, planted};
use cachemark_tape::{Op, Verb};

use super::result::{Failure, Figures, Stamps};

/// An operation that was handed to a connection, or a part of one that goes to several servers.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub op: Op,
    /// When it was meant to start; in a closed loop that is when it was sent.
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) open_loop: bool,
    /// A barrier is not an operation: it ends those that have no reply.
    pub(crate) barrier: bool,
    pub(crate) wrong: bool,
    /// Whether the second command of a cas or fetch is under way.
    pub(crate) swapping: bool,
    /// A part that does on another server what the first part does: its figures do not count.
    pub(crate) copies: bool,
    pub(crate) failure: Option<Failure>,
    /// Keys of the run that are answered (mset) or passed (mget).
    pub(crate) passed: u16,
    /// The number of its first command on its connection.
    pub(crate) tag: u32,
    /// The operation that it is a part of.
    pub(crate) joint: Option<u32>,
    /// The token that a cas has read.
    pub(crate) token: Option<u64>,
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

    /// The command that ends operations without a reply.
    pub fn barrier() -> Pending {
        let version =
            Op { verb: Verb::Version, noreply: false, run: 0, key: 0, length: 0, exptime_s: 0 };
        Pending { barrier: true, ..Pending::closed(version) }
    }

    fn new(op: Op, due_ns: u64, open_loop: bool) -> Pending {
        Pending {
            op,
            due_ns,
            sent_ns: 0,
            open_loop,
            barrier: false,
            wrong: false,
            swapping: false,
            copies: false,
            failure: None,
            passed: 0,
            tag: 0,
            joint: None,
            token: None,
            figures: Figures::default(),
        }
    }

    /// A part of it, by its number: `op` is what goes to one server.
    pub(crate) fn part(&self, op: Op, joint: u32, copies: bool) -> Pending {
        Pending { op, joint: Some(joint), copies, ..*self }
    }

    /// Whether the first command went well and a second is to follow: the swap of a cas, the set of
    /// a fetch that found nothing.
    #[inline]
    pub(crate) fn has_to_swap(&self) -> bool {
        let fills = self.op.verb == Verb::Fetch && self.figures.misses > 0;
        (self.token.is_some() || fills) && !self.swapping && !self.wrong && self.failure.is_none()
    }

    /// What is under way of it on the wire: a fetch is a get, and then a set.
    #[inline]
    pub(crate) fn command(&self) -> Verb {
        match self.op.verb {
            Verb::Fetch if self.swapping => Verb::Set,
            Verb::Fetch => Verb::Get,
            verb => verb,
        }
    }

    /// A batch of sets has one reply for each, anything else one in all: true with the last.
    pub(crate) fn end_of_batch(&mut self) -> bool {
        self.passed = self.passed.saturating_add(1);
        self.op.verb != Verb::Mset || self.passed == self.op.run
    }

    /// What was asked for and did not come is not there.
    #[inline]
    pub(crate) fn end_of_reads(&mut self) {
        self.figures.misses = u32::from(self.op.run) - self.figures.hits;
    }

    /// What a cas has read was gone when it wrote.
    pub(crate) fn gone_between(&mut self) {
        self.figures.hits = 0;
        self.figures.misses = 1;
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
}
