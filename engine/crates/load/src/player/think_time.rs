//! Callers of a closed loop that think before their next operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cachemark_tape::Op;

/// Operations that are not begun yet, by the instant at which they will be. Each takes the room of
/// one outstanding operation on its set of connections, as its caller does nothing else.
pub(crate) struct Thinking {
    /// (instant, which of `ops`): the heap orders numbers alone.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    ops: Vec<Option<(usize, Op)>>,
    free: Vec<usize>,
    of_set: Vec<usize>,
}

impl Thinking {
    /// Nobody thinks; room for `depth` on each of so many sets, so that nothing is allocated later.
    pub(crate) fn new(sets: usize, depth: usize) -> Thinking {
        let most = sets * depth;
        Thinking {
            due: BinaryHeap::with_capacity(most),
            ops: vec![None; most],
            free: (0..most).collect(),
            of_set: vec![0; sets],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many think on a set.
    #[inline]
    pub(crate) fn of(&self, set: usize) -> usize {
        self.of_set[set]
    }

    /// A caller thinks until `due_ns`; the set has room for it.
    pub(crate) fn begin(&mut self, set: usize, op: Op, due_ns: u64) {
        let place = self.free.pop().expect("a set with room has a place to think");
        self.ops[place] = Some((set, op));
        self.due.push(Reverse((due_ns, place)));
        self.of_set[set] += 1;
    }

    /// When the next has thought.
    #[inline]
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// One that has thought by now: its set, its operation and the instant.
    pub(crate) fn done(&mut self, now_ns: u64) -> Option<(usize, Op, u64)> {
        let Reverse((due_ns, place)) = *self.due.peek()?;
        if due_ns > now_ns {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        let (set, op) = self.ops[place].take().expect("what is due has an operation");
        self.of_set[set] -= 1;
        Some((set, op, due_ns))
    }
}
