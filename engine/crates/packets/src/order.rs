//! Segments of a connection that wait for others: a segment is behind the bytes before it, and behind those that it
//! acknowledges. A capture may show them in another order, or lack some.

use std::collections::VecDeque;

use crate::stream::Piece;

/// How long a segment waits for others, on the clock of the capture.
const WAIT_NS: u64 = 10_000_000;
/// The most segments that wait. Segments that are swapped are nearer to each other.
const MOST_WAITING: usize = 64;
/// The memory of a waiting segment besides its bytes.
const WAITING_BYTES: usize = 96;

/// The header of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub sequence: u32,
    pub acknowledged: Option<u32>,
    /// It begins the connection, or ends it.
    pub begins: bool,
    pub ends: bool,
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub from_client: bool,
    pub header: Header,
    at_ns: u64,
    bytes: Vec<u8>,
    length: usize,
}

impl Segment {
    pub(crate) fn piece(&self) -> Piece<'_> {
        Piece { at_ns: self.at_ns, bytes: &self.bytes, length: self.length, is_missing: false }
    }
}

/// In the order of the capture.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    segments: VecDeque<Segment>,
    bytes: usize,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.bytes + self.segments.len() * WAITING_BYTES
    }

    pub(crate) fn add(&mut self, header: &Header, from_client: bool, piece: Piece<'_>) {
        let Piece { at_ns, bytes, length, .. } = piece;
        self.bytes += bytes.len();
        let header = *header;
        let bytes = bytes.to_vec();
        self.segments.push_back(Segment { from_client, header, at_ns, bytes, length });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    /// Take the first segment of a kind.
    pub(crate) fn take(&mut self, is_wanted: impl Fn(&Segment) -> bool) -> Option<Segment> {
        let place = self.segments.iter().position(is_wanted)?;
        let segment = self.segments.remove(place)?;
        self.bytes -= segment.bytes.len();
        Some(segment)
    }

    /// The first segment, if others were awaited for long enough; without a time, they never come.
    pub(crate) fn overdue(&self, now_ns: Option<u64>) -> Option<&Segment> {
        let is_late = |segment: &&Segment| {
            self.segments.len() > MOST_WAITING
                || now_ns.is_none_or(|now_ns| segment.at_ns + WAIT_NS <= now_ns)
        };
        self.segments.front().filter(is_late)
    }
}
