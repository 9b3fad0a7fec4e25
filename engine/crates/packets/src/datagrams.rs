//! The exchanges of UDP: each request is one datagram with a number, which the datagrams of its reply have too.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use crate::book::{AGAIN, Book, WINDOW_NS, reason};
use crate::exchange::Exchange;
use crate::stream::Piece;

const HEADER_BYTES: usize = 8;
/// The most requests that await their replies.
const MOST_AWAITED: usize = 1 << 18;
/// The most clients whose numbers are known.
const MOST_CLIENTS: usize = 1 << 18;
/// `tcpdump -i any` sees a packet on loopback twice: as it leaves, and as it arrives.
const AGAIN_NS: u64 = 1_000_000;

/// Both ends of an exchange: the client's, then the server's.
pub(crate) type Ends = (SocketAddr, SocketAddr);

#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    clients: HashMap<SocketAddr, u32>,
    hash: RandomState,
    awaited: HashMap<(Ends, u16), Reply>,
}

#[derive(Debug)]
struct Reply {
    exchange: Exchange,
    /// The number of the next datagram.
    next: u16,
    at_ns: u64,
    /// The hash of the request.
    asked: u64,
}

/// The number of a request, of a datagram, and how many datagrams there are.
struct Frame<'a> {
    request: u16,
    number: u16,
    count: u16,
    piece: Piece<'a>,
}

fn frame<'a>(piece: &Piece<'a>) -> Option<Frame<'a>> {
    let (header, bytes) = piece.bytes.split_at_checked(HEADER_BYTES)?;
    let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let piece = Piece { bytes, length: piece.length - HEADER_BYTES, ..*piece };
    Some(Frame { request: number(0), number: number(2), count: number(4), piece })
}

impl Datagrams {
    /// A datagram of a client. `next_client` numbers a new one.
    pub(crate) fn ask(
        &mut self,
        ends: Ends,
        piece: &Piece<'_>,
        next_client: &mut u32,
        book: &mut Book,
    ) {
        let Some(frame) = frame(piece).filter(|frame| frame.count == 1) else {
            // memcached refuses requests of several datagrams.
            book.leave_out(reason::NOT_UNDERSTOOD);
            return;
        };
        if self.clients.len() == MOST_CLIENTS && !self.clients.contains_key(&ends.0) {
            // From here on, each has a new number.
            self.clients.clear();
        }
        let client = *self.clients.entry(ends.0).or_insert_with(|| {
            *next_client += 1;
            *next_client - 1
        });
        let asked = self.hash.hash_one(piece.bytes);
        let is_again = self.awaited.get(&(ends, frame.request)).is_some_and(|before| {
            before.asked == asked && piece.at_ns <= before.at_ns.saturating_add(AGAIN_NS)
        });
        if is_again {
            return book.count(AGAIN, 1);
        }
        let mut exchange = Exchange::new(client, true);
        exchange.replies.begin();
        exchange.ask(&frame.piece, book);
        exchange.end_requests(book);
        if self.awaited.len() < MOST_AWAITED {
            let reply = Reply { exchange, next: 0, at_ns: piece.at_ns, asked };
            self.awaited.insert((ends, frame.request), reply);
        }
    }

    /// A datagram of a server. A reply's datagrams are read in the order of sending.
    pub(crate) fn answer(&mut self, ends: Ends, piece: &Piece<'_>, book: &mut Book) {
        let unasked = "datagrams that answer no request";
        let Some(frame) = frame(piece) else { return book.count(unasked, 1) };
        let Some(reply) = self.awaited.get_mut(&(ends, frame.request)) else {
            return book.count(unasked, 1);
        };
        if frame.number != reply.next {
            reply.exchange.replies.stop(book);
        }
        reply.exchange.replies.read(&frame.piece, book);
        reply.next += 1;
        if reply.next >= frame.count {
            self.awaited.remove(&(ends, frame.request));
        }
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.awaited.values().map(|reply| reply.exchange.held_bytes() + size_of::<Reply>()).sum()
    }

    /// Await no reply.
    pub(crate) fn give_up(&mut self) {
        self.awaited.clear();
    }

    /// Forget replies that are not awaited any more.
    pub(crate) fn forget(&mut self, now_ns: u64) {
        self.awaited.retain(|_, reply| reply.at_ns + WINDOW_NS > now_ns);
    }
}
