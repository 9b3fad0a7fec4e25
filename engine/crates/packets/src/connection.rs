//! The exchange of a TCP connection.

use crate::book::Book;
use crate::exchange::Exchange;
use crate::stream::{Piece, Stream};

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
pub(crate) struct Connection {
    exchange: Exchange,
    asked: Stream,
    answered: Stream,
    first: Option<u32>,
    /// The number behind the last byte of the server, and the client's byte that it waits for.
    server_sent: Option<u32>,
    server_awaits: Option<u32>,
    /// The server's byte that the client waits for.
    client_awaits: Option<u32>,
    /// One side has ended it.
    pub is_closed: bool,
    pub last_ns: u64,
}

impl Connection {
    /// A connection of which this is the first segment.
    pub(crate) fn new(client: u32, header: &Header, from_client: bool) -> Connection {
        let mut connection = Connection {
            exchange: Exchange::new(client, header.begins),
            asked: Stream::default(),
            answered: Stream::default(),
            first: None,
            server_sent: None,
            server_awaits: None,
            client_awaits: None,
            is_closed: false,
            last_ns: 0,
        };
        if header.begins {
            let first = match (from_client, header.acknowledged) {
                (false, Some(next)) => next.wrapping_sub(1),
                _ => header.sequence,
            };
            connection.first = Some(first);
            connection.asked.begin(first.wrapping_add(1));
        }
        connection
    }

    /// Whether a segment that begins a connection begins this one.
    pub(crate) fn is_begun_by(&self, header: &Header) -> bool {
        self.first == Some(header.sequence)
    }

    /// Whether a segment is of another connection with the same ports, whose beginning is missing.
    pub(crate) fn is_of_another(&self, header: &Header, from_client: bool) -> bool {
        let stream = if from_client { &self.asked } else { &self.answered };
        !header.begins && stream.is_far(header.sequence)
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.asked.held_bytes() + self.answered.held_bytes() + self.exchange.held_bytes()
    }

    /// Forget what is held in memory: if there is anything, it is counted by the reason.
    pub(crate) fn give_up(&mut self, why: &'static str, book: &mut Book) {
        if self.held_bytes() > 0 {
            self.exchange.give_up(why, book);
            self.skip_gaps(None, book);
        }
    }

    /// No more segments come.
    pub(crate) fn end(&mut self, book: &mut Book) {
        self.skip_gaps(None, book);
        if let Some(length) = self.lost_end() {
            let piece = Piece { at_ns: self.last_ns, bytes: &[], length, is_missing: true };
            self.exchange.ask(&piece, book);
        }
        self.exchange.end_requests(book);
    }

    /// How many of the client's last bytes the server got, and the capture did not; `None`: none.
    fn lost_end(&self) -> Option<usize> {
        let ahead = self.server_awaits?.wrapping_sub(self.asked.next_sequence()?) as i32;
        // The end of a direction counts as a byte.
        let lost = ahead.checked_sub(i32::from(self.is_closed))?;
        usize::try_from(lost).ok().filter(|lost| *lost > 0)
    }

    /// A segment of the client.
    pub(crate) fn ask(&mut self, header: &Header, piece: Piece<'_>, book: &mut Book) {
        self.note(header, piece.at_ns);
        if header.begins {
            return;
        }
        if let Some(acknowledged) = header.acknowledged {
            self.client_awaits = later(acknowledged, self.client_awaits);
        }
        self.skip_known_gaps(piece.at_ns, book);
        if piece.length > 0 {
            self.note_turn(header);
        }
        let Connection { exchange, asked, .. } = self;
        asked.add(header.sequence, piece, &mut |piece| exchange.ask(&piece, book));
    }

    fn note(&mut self, header: &Header, at_ns: u64) {
        self.last_ns = self.last_ns.max(at_ns);
        self.is_closed |= header.ends;
    }

    /// The server accepts the connection, so that its first reply is to the first request.
    fn begin_answers(&mut self, header: &Header) {
        if self.first.is_some() && self.answered.next_sequence().is_none() {
            self.answered.begin(header.sequence.wrapping_add(1));
            self.exchange.replies.begin();
        }
    }

    /// The client sends bytes: are they the beginning of a request?
    fn note_turn(&mut self, header: &Header) {
        if !self.exchange.replies.is_in_step() {
            self.find_step(header);
        } else if self.asked.next_sequence() == Some(header.sequence)
            && self.exchange.is_between_requests()
        {
            self.exchange.replies.note_turn();
        }
    }

    /// If no reply seems to be under way, the next one may be to the next request.
    fn find_step(&mut self, header: &Header) {
        let (Some(sent), Some(awaits)) = (self.server_sent, self.server_awaits) else { return };
        let is_next = self.asked.next_sequence() == Some(header.sequence);
        if is_next && awaits == header.sequence && header.acknowledged == Some(sent) {
            self.answered.begin(sent);
            self.exchange.replies.try_to_begin();
        }
    }

    /// A segment of the server.
    pub(crate) fn answer(&mut self, header: &Header, piece: Piece<'_>, book: &mut Book) {
        self.note(header, piece.at_ns);
        let begins = u32::from(header.begins);
        let end = header.sequence.wrapping_add(piece.length as u32).wrapping_add(begins);
        self.server_sent = later(end, self.server_sent);
        if let Some(acknowledged) = header.acknowledged {
            self.server_awaits = later(acknowledged, self.server_awaits);
        }
        if header.begins {
            return self.begin_answers(header);
        }
        self.skip_known_gaps(piece.at_ns, book);
        let Connection { exchange, answered, .. } = self;
        if exchange.replies.is_in_step() {
            answered.add(header.sequence, piece, &mut |piece| exchange.replies.read(&piece, book));
        }
    }

    /// Give up segments that the other side got, and the capture did not.
    fn skip_known_gaps(&mut self, now_ns: u64, book: &mut Book) {
        let Connection { exchange, asked, answered, .. } = self;
        asked.skip_known_gap(self.server_awaits, now_ns, &mut |piece| exchange.ask(&piece, book));
        answered.skip_known_gap(self.client_awaits, now_ns, &mut |piece| {
            exchange.replies.read(&piece, book);
        });
    }

    /// Give up segments that have been missing for long; or all, at the end.
    pub(crate) fn skip_gaps(&mut self, now_ns: Option<u64>, book: &mut Book) {
        let Connection { exchange, asked, answered, .. } = self;
        asked.skip_gaps(now_ns, &mut |piece| exchange.ask(&piece, book));
        answered.skip_gaps(now_ns, &mut |piece| exchange.replies.read(&piece, book));
    }

    /// Segments that came more than once.
    pub(crate) fn retransmitted(&self) -> u64 {
        self.asked.retransmitted + self.answered.retransmitted
    }
}

/// The later one of two sequence numbers.
fn later(new: u32, old: Option<u32>) -> Option<u32> {
    match old {
        Some(old) if (new.wrapping_sub(old) as i32) < 0 => Some(old),
        _ => Some(new),
    }
}
