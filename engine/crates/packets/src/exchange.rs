//! Requests of one client to one server, and the replies to them.

use cachemark_protocol::binary::request::{Body, Header, Verb, big_endian_u32};
use cachemark_protocol::limits::KEY_BYTES_MAX;
use cachemark_protocol::meta::request::{MetaMode, MetaOptions, MetaRequest, MetaVerb, decode_key};
use cachemark_protocol::text::command::Command;

use crate::awaited::{Awaited, Binary, Meta};
use crate::book::{Book, Operation, Place, reason};
use crate::replies::Replies;
use crate::requests::{Request, Requests};
use crate::stream::Piece;

/// memcached takes a longer time for a date.
const MOST_TTL_S: i64 = 30 * 24 * 3600;
const NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Exchange {
    requests: Requests,
    pub replies: Replies,
    client: Client,
}

/// The known facts of a client's requests so far.
#[derive(Debug)]
struct Client {
    number: u32,
    /// The last request was a quiet read: a read behind it is of the same request of several keys.
    reads_on: bool,
}

impl Exchange {
    pub(crate) fn new(client: u32, from_first_byte: bool) -> Exchange {
        Exchange {
            requests: Requests::new(from_first_byte),
            replies: Replies::default(),
            client: Client { number: client, reads_on: false },
        }
    }

    /// Whether the client's next byte begins a request.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.requests.is_between()
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        self.requests.held_bytes() + self.replies.held_bytes()
    }

    /// No more bytes of the client come.
    pub(crate) fn end_requests(&mut self, book: &mut Book) {
        self.requests.end(book);
    }

    /// Forget what is held in memory: it is counted by the reason.
    pub(crate) fn give_up(&mut self, why: &'static str, book: &mut Book) {
        self.requests.give_up(why, book);
        self.replies.stop(book);
    }

    /// Read bytes of the client.
    pub(crate) fn ask(&mut self, piece: &Piece<'_>, book: &mut Book) {
        let Exchange { requests, replies, client } = self;
        let mut take = |at_ns, request: Request<'_>, book: &mut Book| {
            let mut noted = Noted { at_ns, client, book };
            let awaited = match request {
                Request::Text(command) => noted.text(command),
                Request::Binary(header, body) => noted.binary(&header, &body),
            };
            if let Some(awaited) = awaited {
                replies.await_reply(awaited, book);
            }
        };
        if !requests.read(piece, book, &mut take) {
            replies.stop(book);
            client.reads_on = false;
        }
    }
}

/// A request that is noted.
struct Noted<'a> {
    at_ns: u64,
    client: &'a mut Client,
    book: &'a mut Book,
}

impl Noted<'_> {
    fn add(&mut self, name: &'static str, key: &[u8], length: Option<u64>, exptime: i64) -> Place {
        self.add_joined(name, key, length, exptime, false)
    }

    fn add_joined(
        &mut self,
        name: &'static str,
        key: &[u8],
        length: Option<u64>,
        exptime: i64,
        joined: bool,
    ) -> Place {
        let operation = Operation {
            name,
            key: key.into(),
            length: length.and_then(|length| u32::try_from(length).ok()),
            ttl_s: ttl_s(exptime, self.at_ns),
            client: self.client.number,
            joined,
            succeeded: None,
        };
        self.book.add(self.at_ns, operation)
    }

    fn text(&mut self, command: Command<'_>) -> Option<Awaited> {
        if !matches!(command, Command::Meta(_)) {
            self.client.reads_on = false;
        }
        let line = |place, noreply: bool| (!noreply).then_some(Awaited::Line(place));
        match command {
            Command::Get { keys, cas } => {
                Some(self.values(if cas { "gets" } else { "get" }, keys, 0))
            }
            Command::GetAndTouch { keys, exptime, .. } => Some(self.values("gat", keys, exptime)),
            Command::Store(store) => {
                let place =
                    self.add(store.verb.name(), store.key, Some(store.length), store.exptime);
                line(Some(place), store.noreply)
            }
            Command::Delete { key, noreply } => {
                let place = self.add("delete", key, None, 0);
                line(Some(place), noreply)
            }
            Command::Arithmetic { key, increment, noreply, .. } => {
                let place = self.add(if increment { "incr" } else { "decr" }, key, None, 0);
                line(Some(place), noreply)
            }
            Command::Touch { key, exptime, noreply } => {
                let place = self.add("touch", key, None, exptime);
                line(Some(place), noreply)
            }
            Command::Meta(request) => self.meta(&request),
            Command::MetaNoop => {
                self.client.reads_on = false;
                self.book.count("mn", 1);
                Some(Awaited::Meta(noop()))
            }
            Command::FlushAll { noreply, .. } => {
                self.book.count("flush_all", 1);
                line(None, noreply)
            }
            Command::Version => {
                self.book.count("version", 1);
                line(None, false)
            }
            Command::Quit => {
                self.book.count("quit", 1);
                None
            }
            Command::Stats { .. } => {
                self.book.count("stats", 1);
                Some(Awaited::Lines)
            }
            Command::Control { noreply, .. } => {
                self.book.count("commands of operators", 1);
                (!noreply).then_some(Awaited::Lines)
            }
            Command::Watch { .. } => {
                self.book.count("watch", 1);
                Some(Awaited::Lines)
            }
        }
    }

    fn values<'k>(
        &mut self,
        name: &'static str,
        keys: impl Iterator<Item = &'k [u8]>,
        exptime: i64,
    ) -> Awaited {
        let mut noted: Vec<(Box<[u8]>, Place)> = Vec::new();
        for key in keys {
            let place = self.add_joined(name, key, None, exptime, !noted.is_empty());
            noted.push((key.into(), place));
        }
        Awaited::Values { keys: noted, passed: 0 }
    }

    fn meta(&mut self, request: &MetaRequest<'_>) -> Option<Awaited> {
        let mut buffer = [0; KEY_BYTES_MAX];
        let options = request.options().ok();
        let key = match &options {
            Some(options) if options.base64 => decode_key(request.key, &mut buffer).ok(),
            _ => Some(request.key),
        };
        let (Some(options), Some(key)) = (options, key) else {
            self.client.reads_on = false;
            self.book.leave_out(reason::NOT_UNDERSTOOD);
            // Whether it has a reply is not known either.
            return Some(Awaited::Line(None));
        };
        let is_read = request.verb == MetaVerb::Get;
        let joined = is_read && self.client.reads_on;
        self.client.reads_on = is_read && options.quiet;
        let exptime = options.exptime.unwrap_or(0);
        let place = match meta_name(request.verb, &options) {
            Some(name) => {
                let length = (request.verb == MetaVerb::Set).then_some(request.length);
                Some(self.add_joined(name, key, length, exptime, joined))
            }
            None => {
                self.book.count("me", 1);
                None
            }
        };
        let returns_key = options.letters.iter().any(|letter| letter == b'k');
        Some(Awaited::Meta(Meta {
            place,
            is_read,
            quiet: options.quiet,
            opaque: options.opaque.get(1..).unwrap_or_default().into(),
            key: if returns_key { request.key.into() } else { Box::default() },
        }))
    }

    fn binary(&mut self, header: &Header, body: &Body<'_>) -> Option<Awaited> {
        let Some(verb) = header.verb() else {
            self.book.leave_out(reason::NOT_UNDERSTOOD);
            return Some(Awaited::Binary(binary(header, None, false, b"")));
        };
        let is_read = matches!(verb, Verb::Get | Verb::GetAndTouch);
        let joined = is_read && self.client.reads_on;
        self.client.reads_on = is_read && header.is_quiet();
        let place = match binary_name(verb) {
            Some(name) => {
                let length = verb.stores().then_some(header.value_bytes() as u64);
                let exptime = match verb {
                    Verb::Set | Verb::Add | Verb::Replace => seconds(&body.extras[4..8]),
                    Verb::Touch | Verb::GetAndTouch => seconds(&body.extras[..4]),
                    _ => 0,
                };
                Some(self.add_joined(name, body.key, length, exptime, joined))
            }
            None => {
                self.book.count("binary requests without a key", 1);
                None
            }
        };
        let key = if header.echoes_key() { body.key } else { b"" };
        let quits = verb == Verb::Quit && header.is_quiet();
        (!quits).then(|| Awaited::Binary(binary(header, place, is_read, key)))
    }
}

/// `mn`, whose reply comes behind all others.
fn noop() -> Meta {
    Meta { place: None, is_read: false, quiet: false, opaque: Box::default(), key: Box::default() }
}

fn binary(header: &Header, place: Option<Place>, is_read: bool, key: &[u8]) -> Binary {
    Binary {
        place,
        is_read,
        quiet: header.is_quiet(),
        opcode: header.opcode,
        opaque: header.opaque,
        key: key.into(),
    }
}

fn seconds(bytes: &[u8]) -> i64 {
    i64::from(big_endian_u32(bytes) as i32)
}

/// The name of a meta command, as the text protocol has it; `None` if it is not about an operation.
fn meta_name(verb: MetaVerb, options: &MetaOptions<'_>) -> Option<&'static str> {
    let has = |letter| options.letters.iter().any(|other| other == letter);
    Some(match (verb, options.mode) {
        (MetaVerb::Get, _) if options.exptime.is_some() && has(b'v') => "gat",
        (MetaVerb::Get, _) if options.exptime.is_some() => "touch",
        (MetaVerb::Get, _) if has(b'c') => "gets",
        (MetaVerb::Get, _) => "get",
        (MetaVerb::Set, MetaMode::Add) => "add",
        (MetaVerb::Set, MetaMode::Replace) => "replace",
        (MetaVerb::Set, MetaMode::Append) => "append",
        (MetaVerb::Set, MetaMode::Prepend) => "prepend",
        (MetaVerb::Set, _) if options.expected_cas.is_some() => "cas",
        (MetaVerb::Set, _) => "set",
        (MetaVerb::Delete, _) => "delete",
        (MetaVerb::Arithmetic, MetaMode::Decrement) => "decr",
        (MetaVerb::Arithmetic, _) => "incr",
        (MetaVerb::Debug, _) => return None,
    })
}

fn binary_name(verb: Verb) -> Option<&'static str> {
    Some(match verb {
        Verb::Get => "get",
        Verb::GetAndTouch => "gat",
        Verb::Set => "set",
        Verb::Add => "add",
        Verb::Replace => "replace",
        Verb::Append => "append",
        Verb::Prepend => "prepend",
        Verb::Delete => "delete",
        Verb::Increment => "incr",
        Verb::Decrement => "decr",
        Verb::Touch => "touch",
        _ => return None,
    })
}

/// The time to live of an exptime: a large one is a date, a negative one has passed. What has passed lives 1 s here,
/// as 0 is for ever.
fn ttl_s(exptime: i64, at_ns: u64) -> u32 {
    let seconds = match exptime {
        0 => return 0,
        1..=MOST_TTL_S => exptime,
        date => date.saturating_sub((at_ns / NS) as i64),
    };
    seconds.clamp(1, MOST_TTL_S) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_negative_times_become_times_to_live() {
        let now = 1_800_000_000;
        let expected =
            [(0, 0), (60, 60), (-1, 1), (now + 90, 90), (now - 5, 1), (i64::MAX, 2_592_000)];
        for (exptime, ttl) in expected {
            assert_eq!(ttl_s(exptime, now as u64 * NS), ttl, "{exptime}");
        }
    }
}
