//! Callers of a closed loop that think before their next operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cachemark_tape::Op;

/// Operations that are not begun yet, by the instant at which they will be. Each takes the room of
/// one outstanding operation on its set of connections, as its caller does nothing else.
pub(crate) struct ThinkQueue {
    /// (instant, which of `ops`): the heap orders numbers alone.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    ops: Vec<Option<(usize, Op)>>,
    free: Vec<usize>,
    waiting_by_channel: Vec<usize>,
}

impl ThinkQueue {
    /// Nobody thinks; room for `depth` on each of so many sets, so that nothing is allocated later.
    pub(crate) fn new(channels: usize, depth: usize) -> ThinkQueue {
        let most = channels * depth;
        ThinkQueue {
            due: BinaryHeap::with_capacity(most),
            ops: vec![None; most],
            free: (0..most).collect(),
            waiting_by_channel: vec![0; channels],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many think on a set.
    #[inline]
    pub(crate) fn waiting_on(&self, channel: usize) -> usize {
        self.waiting_by_channel[channel]
    }

    /// A caller thinks until `due_ns`; the set has room for it.
    pub(crate) fn start(&mut self, channel: usize, op: Op, due_ns: u64) {
        let place = self.free.pop().expect("a set with room has a place to think");
        self.ops[place] = Some((channel, op));
        self.due.push(Reverse((due_ns, place)));
        self.waiting_by_channel[channel] += 1;
    }

    /// When the next has thought.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// One that has thought by now: its set, its operation and the instant.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<(usize, Op, u64)> {
        let Reverse((due_ns, place)) = *self.due.peek()?;
        if due_ns > now_ns {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        let (channel, op) = self.ops[place].take().expect("what is due has an operation");
        self.waiting_by_channel[channel] -= 1;
        Some((channel, op, due_ns))
    }
}
