//! The operations that were found, in the order of their times, and counts of what is missing. An operation is kept
//! until its reply is here or too late.

use std::collections::BTreeMap;

use cachemark_trace::file::Record;

/// How long a reply is awaited, and how far the clock may go back.
pub(crate) const WINDOW_NS: u64 = 1_000_000_000;
/// The most operations that are kept, so that memory is bounded.
const MOST_PENDING: usize = 1 << 20;

/// Segments that come a second time.
pub(crate) const AGAIN: &str = "segments that came again";

pub(crate) mod reason {
    //! Why operations are left out. *At least*: a hole counts once, as the number of operations in it is unknown.

    pub(crate) const MISSING: &str = "in packets that are missing (at least)";
    pub(crate) const CUT: &str = "behind the cut of packets (at least)";
    pub(crate) const BEGAN_BEFORE: &str = "that began before the capture (at least)";
    pub(crate) const NOT_UNDERSTOOD: &str = "that were not understood (at least)";
    pub(crate) const TLS: &str = "in connections with TLS (at least)";
    pub(crate) const FRAGMENTS: &str = "in fragments of IP packets (at least)";
    pub(crate) const CUT_HEADERS: &str = "in packets whose headers were cut (at least)";
    pub(crate) const TOO_MANY: &str = "in too many connections at once (at least)";
    pub(crate) const MEMORY: &str = "given up because they took too much memory (at least)";
    pub(crate) const UNFINISHED: &str = "that ended in the middle";
    pub(crate) const UNKNOWN_LINK: &str = "in packets of links that are not read (at least)";
}

/// An operation on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub name: &'static str,
    pub key: Box<[u8]>,
    pub length: Option<u32>,
    pub ttl_s: u32,
    pub client: u32,
    pub joined: bool,
    pub succeeded: Option<bool>,
}

/// Where a pending operation is: its time, and how many came before.
pub(crate) type Place = (u64, u64);

#[derive(Debug, Default)]
pub(crate) struct Book {
    pending: BTreeMap<Place, Operation>,
    /// The operation that was taken last.
    taken: Option<Operation>,
    operations: u64,
    now_ns: u64,
    released_ns: u64,
    pub left_out: BTreeMap<&'static str, u64>,
    pub others: BTreeMap<&'static str, u64>,
    /// Operations that were given away without an outcome.
    pub unknown_outcomes: u64,
}

impl Book {
    pub(crate) fn add(&mut self, at_ns: u64, operation: Operation) -> Place {
        let place = (at_ns.max(self.released_ns), self.operations);
        self.operations += 1;
        self.pending.insert(place, operation);
        place
    }

    /// The reply to an operation: whether it succeeded, and the size of the value that it has.
    pub(crate) fn settle(&mut self, place: Place, succeeded: Option<bool>, length: Option<u32>) {
        if let Some(operation) = self.pending.get_mut(&place) {
            operation.succeeded = succeeded;
            operation.length = length.or(operation.length);
        }
    }

    pub(crate) fn leave_out(&mut self, reason: &'static str) {
        *self.left_out.entry(reason).or_default() += 1;
    }

    pub(crate) fn count(&mut self, name: &'static str, more: u64) {
        if more > 0 {
            *self.others.entry(name).or_default() += more;
        }
    }

    pub(crate) fn go_to(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Whether an operation can be taken: one that is certain, or at the end any.
    pub(crate) fn is_ready(&self, at_end: bool) -> bool {
        let is_old = |place: &Place| at_end || place.0 + WINDOW_NS <= self.now_ns;
        let first = self.pending.first_key_value();
        first.is_some_and(|(place, _)| is_old(place)) || self.pending.len() > MOST_PENDING
    }

    /// The first operation.
    pub(crate) fn take(&mut self) -> Option<Record<'_>> {
        let ((at_ns, _), operation) = self.pending.pop_first()?;
        self.released_ns = at_ns;
        self.unknown_outcomes += u64::from(operation.succeeded.is_none());
        let operation = self.taken.insert(operation);
        Some(Record {
            at_ns: Some(at_ns),
            operation: operation.name,
            key: &operation.key,
            key_bytes: None,
            length: operation.length,
            ttl_s: operation.ttl_s,
            count: 1,
            client: Some(operation.client),
            succeeded: operation.succeeded,
            joined: operation.joined,
        })
    }
}
