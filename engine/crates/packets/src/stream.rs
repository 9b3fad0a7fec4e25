//! One direction of a TCP connection: its bytes in order, each once, with holes where none were captured.

use std::collections::BTreeMap;

/// How long segments behind a missing one wait, on the clock of the capture.
pub(crate) const GAP_WAIT_NS: u64 = 500_000_000;
/// The same if the other side has them: then the capture lost them, or shows them late.
const KNOWN_GAP_WAIT_NS: u64 = 10_000_000;
/// The most segments that wait, and their most bytes.
const MOST_WAITING: usize = 4096;
const MOST_WAITING_BYTES: usize = 1 << 22;
/// The memory of a waiting segment besides its bytes.
const WAITING_BYTES: usize = 96;
/// Bytes that are under way are nearer to each other.
const FAR_BYTES: u64 = 1 << 28;

/// Bytes that follow those before. Behind the captured ones are others, up to `length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub at_ns: u64,
    pub bytes: &'a [u8],
    pub length: usize,
    /// The rest was in packets that are missing, not cut off from packets.
    pub is_missing: bool,
}

impl Piece<'_> {
    pub(crate) fn hole(&self) -> u64 {
        (self.length - self.bytes.len()) as u64
    }
}

#[derive(Debug)]
struct Waiting {
    at_ns: u64,
    bytes: Vec<u8>,
    length: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The sequence number of the next byte, and its distance from the first one.
    next: Option<(u32, u64)>,
    /// By the distance from the first byte.
    waiting: BTreeMap<u64, Waiting>,
    waiting_bytes: usize,
    gap_since_ns: u64,
    pub retransmitted: u64,
}

impl Stream {
    /// The next byte has this number.
    pub(crate) fn begin(&mut self, sequence: u32) {
        let retransmitted = self.retransmitted;
        *self = Stream { next: Some((sequence, 0)), retransmitted, ..Stream::default() };
    }

    pub(crate) fn next_sequence(&self) -> Option<u32> {
        self.next.map(|(sequence, _)| sequence)
    }

    /// Whether a byte is too far away to be under way: it belongs to another connection with the same ports.
    pub(crate) fn is_far(&self, sequence: u32) -> bool {
        self.next.is_some_and(|(next, _)| ahead(sequence, next).unsigned_abs() > FAR_BYTES)
    }

    /// How many bytes are between the next byte and this one; below 0: it was here. A stream begins with any byte.
    pub(crate) fn ahead(&self, sequence: u32) -> i64 {
        self.next.map_or(0, |(next, _)| ahead(sequence, next))
    }

    /// This number of bytes is missing, or less if later ones are waiting.
    pub(crate) fn miss(&mut self, bytes: i64, at_ns: u64, take: &mut dyn FnMut(Piece<'_>)) {
        let Some((_, at)) = self.next else { return };
        let first = self.waiting.first_key_value().map_or(u64::MAX, |(place, _)| *place - at);
        let length = u64::try_from(bytes).unwrap_or(0).min(first) as usize;
        self.pass(Piece { at_ns, bytes: &[], length, is_missing: true }, take);
        self.take_waiting(take);
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.waiting_bytes + self.waiting.len() * WAITING_BYTES
    }

    /// Add a segment, and take what is in order now. Without a beginning, the stream begins here.
    pub(crate) fn add(&mut self, sequence: u32, piece: Piece<'_>, take: &mut dyn FnMut(Piece<'_>)) {
        if piece.length == 0 {
            return;
        }
        let (next, at) = *self.next.get_or_insert((sequence, 0));
        let ahead = ahead(sequence, next);
        if ahead > 0 {
            self.wait(at + ahead as u64, piece);
            if self.waiting.len() > MOST_WAITING || self.waiting_bytes > MOST_WAITING_BYTES {
                self.skip_gap(take);
            }
            return;
        }
        match without(piece, ahead.unsigned_abs() as usize) {
            None => self.retransmitted += 1,
            Some(piece) => {
                self.pass(piece, take);
                self.take_waiting(take);
            }
        }
    }

    fn wait(&mut self, place: u64, piece: Piece<'_>) {
        if self.waiting.is_empty() {
            self.gap_since_ns = piece.at_ns;
        }
        let Piece { at_ns, bytes, length, .. } = piece;
        let known = self.waiting.get(&place).map_or(0, |waiting| waiting.length);
        if length <= known {
            self.retransmitted += 1;
            return;
        }
        self.waiting_bytes += bytes.len();
        let before = self.waiting.insert(place, Waiting { at_ns, bytes: bytes.to_vec(), length });
        self.waiting_bytes -= before.map_or(0, |waiting| waiting.bytes.len());
    }

    /// Give up what has been missing for long enough at a time; or all that is missing.
    pub(crate) fn skip_gaps(&mut self, now_ns: Option<u64>, take: &mut dyn FnMut(Piece<'_>)) {
        let is_old = |since: u64| now_ns.is_none_or(|now_ns| since + GAP_WAIT_NS <= now_ns);
        while !self.waiting.is_empty() && is_old(self.gap_since_ns) {
            self.skip_gap(take);
        }
    }

    /// Give up what is missing if the other side awaits a byte behind it: it got the missing ones.
    pub(crate) fn skip_known_gap(
        &mut self,
        awaited: Option<u32>,
        now_ns: u64,
        take: &mut dyn FnMut(Piece<'_>),
    ) {
        let (Some((next, at)), Some((place, _)), Some(awaited)) =
            (self.next, self.waiting.first_key_value(), awaited)
        else {
            return;
        };
        let has_it = ahead(awaited, next) >= (place - at) as i64;
        if has_it && self.gap_since_ns + KNOWN_GAP_WAIT_NS <= now_ns {
            self.skip_gap(take);
        }
    }

    fn skip_gap(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        let (Some((place, waiting)), Some((_, at))) = (self.waiting.first_key_value(), self.next)
        else {
            return;
        };
        let length = (place - at) as usize;
        self.pass(Piece { at_ns: waiting.at_ns, bytes: &[], length, is_missing: true }, take);
        self.take_waiting(take);
    }

    fn take_waiting(&mut self, take: &mut dyn FnMut(Piece<'_>)) {
        while let (Some(first), Some((_, at))) = (self.waiting.first_entry(), self.next) {
            if *first.key() > at {
                self.gap_since_ns = self.gap_since_ns.max(first.get().at_ns);
                return;
            }
            let (place, waiting) = first.remove_entry();
            self.waiting_bytes -= waiting.bytes.len();
            let Waiting { at_ns, ref bytes, length } = waiting;
            let piece = Piece { at_ns, bytes, length, is_missing: false };
            match without(piece, (at - place) as usize) {
                None => self.retransmitted += 1,
                Some(piece) => self.pass(piece, take),
            }
        }
    }

    fn pass(&mut self, piece: Piece<'_>, take: &mut dyn FnMut(Piece<'_>)) {
        if let Some((sequence, at)) = &mut self.next {
            *sequence = sequence.wrapping_add(piece.length as u32);
            *at += piece.length as u64;
        }
        take(piece);
    }
}

fn ahead(sequence: u32, next: u32) -> i64 {
    i64::from(sequence.wrapping_sub(next) as i32)
}

/// A piece without its first bytes; `None` if nothing is left.
fn without(piece: Piece<'_>, known: usize) -> Option<Piece<'_>> {
    let length = piece.length.checked_sub(known).filter(|length| *length > 0)?;
    Some(Piece { bytes: piece.bytes.get(known..).unwrap_or(&[]), length, ..piece })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Add segments of a text: where each begins, how long it is, how much of it was captured.
    fn read(text: &[u8], first: u32, segments: &[(usize, usize, usize)]) -> (String, u64) {
        let mut stream = Stream::default();
        stream.begin(first);
        let mut read = String::new();
        let mut take = |piece: Piece<'_>| {
            read += &String::from_utf8_lossy(piece.bytes);
            read += &"_".repeat(piece.hole() as usize);
        };
        for &(begin, length, captured) in segments {
            let bytes = &text[begin..begin + captured];
            let piece = Piece { at_ns: 1, bytes, length, is_missing: false };
            stream.add(first.wrapping_add(begin as u32), piece, &mut take);
        }
        stream.skip_gaps(None, &mut take);
        (read, stream.retransmitted)
    }

    #[test]
    fn segments_are_put_in_order_with_each_byte_once() {
        let text = b"0123456789abcdef";
        for first in [0, 7, u32::MAX - 4] {
            let disorder = [(4, 4, 4), (0, 4, 4), (0, 4, 4), (6, 6, 6), (14, 2, 2), (12, 2, 2)];
            assert_eq!(read(text, first, &disorder), ("0123456789abcdef".to_owned(), 1));
            assert_eq!(read(text, first, &[(0, 4, 4), (8, 8, 8)]).0, "0123____89abcdef");
            assert_eq!(read(text, first, &[(0, 8, 2), (8, 8, 8)]).0, "01______89abcdef");
            assert_eq!(read(text, first, &[(8, 2, 2), (8, 4, 4), (0, 8, 8)]).0, "0123456789ab");
        }
    }

    #[test]
    fn what_is_missing_is_not_awaited_for_ever() {
        let mut stream = Stream::default();
        stream.begin(0);
        let piece = |at_ns, bytes| Piece { at_ns, bytes, length: 1, is_missing: false };
        let mut seen = 0;
        stream.add(5, piece(10, b"x"), &mut |_| seen += 1);
        stream.skip_gaps(Some(10 + GAP_WAIT_NS - 1), &mut |_| seen += 1);
        assert_eq!(seen, 0);
        stream.skip_gaps(Some(10 + GAP_WAIT_NS), &mut |_| seen += 1);
        assert_eq!(seen, 2, "the gap, and what is behind it");
    }

    #[test]
    fn what_the_other_side_has_is_awaited_shortly() {
        let mut stream = Stream::default();
        stream.begin(0);
        let piece = |at_ns, bytes| Piece { at_ns, bytes, length: 1, is_missing: false };
        let mut seen = 0;
        stream.add(5, piece(10, b"x"), &mut |_| seen += 1);
        let mut after = |awaited, wait_ns| {
            stream.skip_known_gap(Some(awaited), 10 + wait_ns, &mut |_| seen += 1);
            seen
        };
        assert_eq!(after(4, GAP_WAIT_NS), 0, "not all of it");
        assert_eq!(after(6, KNOWN_GAP_WAIT_NS - 1), 0, "it may come yet");
        assert_eq!(after(6, KNOWN_GAP_WAIT_NS), 2);
    }
}
