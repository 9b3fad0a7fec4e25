//! An operation that was handed to a connection and has not completed.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_tape::{Op, Verb};

use super::result::{Failure, OperationCounts, Timestamps};

/// An operation in flight, or the part of one that goes to one of several servers.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub op: Op,
    /// The intended start. In a closed loop this is the time at which it was sent.
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) open_loop: bool,
    /// True for a barrier: not an operation, but a command whose reply shows that all operations
    /// without a reply before it are done.
    pub(crate) barrier: bool,
    pub(crate) wrong: bool,
    /// It was given up because an older operation on its connection timed out.
    pub(crate) cut_off: bool,
    /// The second command of a cas or fetch is in flight.
    pub(crate) in_second_command: bool,
    /// This part repeats the first part on another server, so its counts are not added.
    pub(crate) is_replica: bool,
    pub(crate) failure: Option<Failure>,
    /// Keys of the run that have been answered (mset), or that replies have passed (mget).
    pub(crate) keys_answered: u16,
    /// The number of its first command on the connection.
    pub(crate) tag: u32,
    /// The split operation that this is a part of.
    pub(crate) split_id: Option<u32>,
    /// The group of the tape that it belongs to, if groups are timed.
    pub(crate) group: Option<u32>,
    /// The CAS token from the first reply of a cas.
    pub(crate) token: Option<u64>,
    pub(crate) counts: OperationCounts,
}

impl Pending {
    /// An operation that is sent as soon as possible.
    pub fn closed_loop(op: Op) -> Pending {
        Pending::new(op, 0, false)
    }

    /// An operation with an intended start.
    pub fn open_loop(op: Op, due_ns: u64) -> Pending {
        Pending::new(op, due_ns, true)
    }

    /// The command whose reply ends the operations without a reply.
    pub fn barrier() -> Pending {
        let version = Op {
            verb: Verb::Version,
            noreply: false,
            run: 0,
            key: 0,
            length: 0,
            exptime_s: 0,
            generation: 0,
        };
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
            cut_off: false,
            in_second_command: false,
            is_replica: false,
            failure: None,
            keys_answered: 0,
            tag: 0,
            split_id: None,
            group: None,
            token: None,
            counts: OperationCounts::default(),
        }
    }

    /// The part `op` of a split operation, for one server.
    pub(crate) fn part(&self, op: Op, split_id: u32, is_replica: bool) -> Pending {
        Pending { op, split_id: Some(split_id), is_replica, ..*self }
    }

    /// Whether the first command succeeded and a second one follows: the store of a cas, or the set
    /// after a miss of a fetch.
    #[inline]
    pub(crate) fn needs_second_command(&self) -> bool {
        let fills = self.op.verb == Verb::Fetch && self.counts.misses > 0;
        (self.token.is_some() || fills)
            && !self.in_second_command
            && !self.wrong
            && self.failure.is_none()
    }

    /// The command that is in flight: a fetch is a get, then a set.
    #[inline]
    pub(crate) fn command(&self) -> Verb {
        match self.op.verb {
            Verb::Fetch if self.in_second_command => Verb::Set,
            Verb::Fetch => Verb::Get,
            verb => verb,
        }
    }

    /// Count one reply. True if it was the last: an mset has one reply per key, other operations have
    /// one in all.
    pub(crate) fn is_last_of_batch(&mut self) -> bool {
        self.keys_answered = self.keys_answered.saturating_add(1);
        self.op.verb != Verb::Mset || self.keys_answered == self.op.run
    }

    /// Keys that were requested and not returned are misses.
    #[inline]
    pub(crate) fn count_missing_keys(&mut self) {
        self.counts.misses = u32::from(self.op.run) - self.counts.hits;
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
