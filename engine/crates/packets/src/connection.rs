//! The exchange of a TCP connection.

use crate::book::Book;
use crate::exchange::Exchange;
use crate::order::{Header, Waiting};
use crate::stream::{Piece, Stream};

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
    /// Segments that come before others on which they depend.
    waiting: Waiting,
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
            waiting: Waiting::default(),
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
        self.asked.held_bytes()
            + self.answered.held_bytes()
            + self.exchange.held_bytes()
            + self.waiting.held_bytes()
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

    /// The next segment of the capture.
    pub(crate) fn add(
        &mut self,
        header: &Header,
        from_client: bool,
        piece: Piece<'_>,
        book: &mut Book,
    ) {
        if header.begins {
            self.read_waiting(None, book);
        }
        if header.begins || self.waiting.is_empty() && self.is_next(header, from_client) {
            return self.read(header, from_client, piece, book);
        }
        self.waiting.add(header, from_client, piece);
        self.read_waiting(Some(piece.at_ns), book);
    }

    fn read(&mut self, header: &Header, from_client: bool, piece: Piece<'_>, book: &mut Book) {
        if from_client {
            self.ask(header, piece, book);
        } else {
            self.answer(header, piece, book);
        }
    }

    /// Whether everything is here that a segment follows.
    fn is_next(&self, header: &Header, from_client: bool) -> bool {
        let (own, _) = self.directions(from_client);
        self.lacking(own, header.sequence) <= 0 && self.unseen(header, from_client) <= 0
    }

    /// How many bytes of the other side a segment acknowledges that are not here.
    fn unseen(&self, header: &Header, from_client: bool) -> i64 {
        let (_, other) = self.directions(from_client);
        header.acknowledged.map_or(0, |acknowledged| self.lacking(other, acknowledged))
    }

    /// How many bytes of a direction before this one are not here.
    fn lacking(&self, of: &Stream, sequence: u32) -> i64 {
        // The end of a direction counts as a byte.
        of.ahead(sequence) - i64::from(self.is_closed)
    }

    fn directions(&self, from_client: bool) -> (&Stream, &Stream) {
        if from_client { (&self.asked, &self.answered) } else { (&self.answered, &self.asked) }
    }

    /// Read the waiting segments whose turn it is now. What others wait for in vain is missing.
    fn read_waiting(&mut self, now_ns: Option<u64>, book: &mut Book) {
        loop {
            let mut waiting = std::mem::take(&mut self.waiting);
            let next = waiting.take(|segment| self.is_next(&segment.header, segment.from_client));
            self.waiting = waiting;
            if let Some(next) = next {
                self.read(&next.header, next.from_client, next.piece(), book);
                continue;
            }
            let Some(first) = self.waiting.overdue(now_ns) else { return };
            let (header, from_client) = (first.header, first.from_client);
            let at_ns = first.piece().at_ns;
            if self.unseen(&header, from_client) > 0 {
                let acknowledged = header.acknowledged.unwrap_or_default();
                self.miss(!from_client, acknowledged, at_ns, book);
            } else if self.is_acknowledged(&header, from_client) {
                self.miss(from_client, header.sequence, at_ns, book);
            } else if let Some(first) = self.waiting.take(|_| true) {
                // It may come again: the stream waits for longer.
                self.read(&first.header, from_client, first.piece(), book);
            }
        }
    }

    /// Whether the other side has all that is before a segment.
    fn is_acknowledged(&self, header: &Header, from_client: bool) -> bool {
        let noted = if from_client { self.server_awaits } else { self.client_awaits };
        let others = self.waiting.iter().filter(|segment| segment.from_client != from_client);
        let mut awaited = others.filter_map(|segment| segment.header.acknowledged).chain(noted);
        awaited.any(|awaited| header.sequence.wrapping_sub(awaited) as i32 <= 0)
    }

    /// The bytes of a direction up to this one are missing, as far as none of them waits.
    fn miss(&mut self, of_client: bool, until: u32, at_ns: u64, book: &mut Book) {
        let (stream, _) = self.directions(of_client);
        let ahead = self.lacking(stream, until);
        let waiting = self.waiting.iter().filter(|segment| segment.from_client == of_client);
        let others = waiting.map(|segment| stream.ahead(segment.header.sequence));
        let missing = others.filter(|other| *other > 0).fold(ahead, i64::min);
        let Connection { exchange, asked, answered, .. } = self;
        if of_client {
            asked.miss(missing, at_ns, &mut |piece| exchange.ask(&piece, book));
        } else {
            answered.miss(missing, at_ns, &mut |piece| exchange.replies.read(&piece, book));
        }
    }

    /// A segment of the client.
    fn ask(&mut self, header: &Header, piece: Piece<'_>, book: &mut Book) {
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
    fn answer(&mut self, header: &Header, piece: Piece<'_>, book: &mut Book) {
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
        answered.add(header.sequence, piece, &mut |piece| exchange.replies.read(&piece, book));
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
        self.read_waiting(now_ns, book);
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
