//! One operation on its way: when it was due, when it left, what its replies came to so far.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::{Op, Verb};

use super::result::{Failure, OperationCounts, Timestamps};

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
    pub(crate) in_second_command: bool,
    /// A part that does on another server what the first part does: its figures do not count.
    pub(crate) is_replica: bool,
    pub(crate) failure: Option<Failure>,
    /// Keys of the run that are answered (mset) or passed (mget).
    pub(crate) keys_answered: u16,
    /// The number of its first command on its connection.
    pub(crate) tag: u32,
    /// The operation that it is a part of.
    pub(crate) split_id: Option<u32>,
    /// The token that a cas has read.
    pub(crate) token: Option<u64>,
    pub(crate) counts: OperationCounts,
}

impl Pending {
    /// An operation that is to be sent as soon as the bytes before it are.
    pub fn closed_loop(op: Op) -> Pending {
        Pending::new(op, 0, false)
    }

    /// An operation that was due at an instant, however late it is sent.
    pub fn open_loop(op: Op, due_ns: u64) -> Pending {
        Pending::new(op, due_ns, true)
    }

    /// The command that ends operations without a reply.
    pub fn barrier() -> Pending {
        let version =
            Op { verb: Verb::Version, noreply: false, run: 0, key: 0, length: 0, exptime_s: 0 };
        Pending { barrier: true, ..Pending::closed_loop(version) }
    }

    fn new(op: Op, due_ns: u64, open_loop: bool) -> Pending {
        Pending {
            op,
            due_ns,
            sent_ns: 0,
            open_loop,
            barrier: false,
            wrong: false,
            in_second_command: false,
            is_replica: false,
            failure: None,
            keys_answered: 0,
            tag: 0,
            split_id: None,
            token: None,
            counts: OperationCounts::default(),
        }
    }

    /// A part of it, by its number: `op` is what goes to one server.
    pub(crate) fn part(&self, op: Op, split_id: u32, is_replica: bool) -> Pending {
        Pending { op, split_id: Some(split_id), is_replica, ..*self }
    }

    /// Whether the first command went well and a second is to follow: the swap of a cas, the set of
    /// a fetch that found nothing.
    #[inline]
    pub(crate) fn needs_second_command(&self) -> bool {
        let fills = self.op.verb == Verb::Fetch && self.counts.misses > 0;
        (self.token.is_some() || fills)
            && !self.in_second_command
            && !self.wrong
            && self.failure.is_none()
    }

    /// What is under way of it on the wire: a fetch is a get, and then a set.
    #[inline]
    pub(crate) fn command(&self) -> Verb {
        match self.op.verb {
            Verb::Fetch if self.in_second_command => Verb::Set,
            Verb::Fetch => Verb::Get,
            verb => verb,
        }
    }

    /// A batch of sets has one reply for each, anything else one in all: true with the last.
    pub(crate) fn is_last_of_batch(&mut self) -> bool {
        self.keys_answered = self.keys_answered.saturating_add(1);
        self.op.verb != Verb::Mset || self.keys_answered == self.op.run
    }

    /// What was asked for and did not come is not there.
    #[inline]
    pub(crate) fn count_missing_keys(&mut self) {
        self.counts.misses = u32::from(self.op.run) - self.counts.hits;
    }

    /// What a cas has read was gone when it wrote.
    pub(crate) fn vanished_before_store(&mut self) {
        self.counts.hits = 0;
        self.counts.misses = 1;
    }

    #[inline]
    pub(crate) fn timestamps(&self, now_ns: u64) -> Timestamps {
        let from_due = self.open_loop && !injected(Bug::SendStamp);
        Timestamps {
            verb: self.op.verb,
            noreply: self.op.noreply,
            due_ns: if from_due { self.due_ns } else { self.sent_ns },
            sent_ns: self.sent_ns,
            now_ns,
        }
    }
}
