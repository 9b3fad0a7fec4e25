//! The requests in the bytes of a client, of which some may be missing.
//!
//! Data whose length is known may be missing without harm. Behind any other hole, and in a connection that began before
//! the capture, a request is searched: where a segment begins, or behind a line's end.

use cachemark_protocol::binary::request::{Body, HEADER_BYTES, Header, REQUEST_MAGIC};
use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};

use crate::book::{Book, reason};
use crate::stream::Piece;

/// No request without its value is longer.
const MOST_HELD_BYTES: usize = 1 << 20;
/// The search finds no larger value: memcached's largest limit is 1 GiB.
const MOST_VALUE_BYTES: u64 = 1 << 30;
const LINE_END_BYTES: u64 = 2;
/// How many lines must look like commands where a request is searched.
const MOST_LINES_CHECKED: usize = 4;

pub(crate) enum Request<'a> {
    Text(Command<'a>),
    Binary(Header, Body<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At the first byte of a connection.
    First,
    Text,
    Binary,
    /// Somewhere; `began`: some bytes were skipped.
    Lost {
        skipped: bool,
    },
    /// Nothing of this connection can be read.
    Unreadable,
}

#[derive(Debug)]
pub(crate) struct Requests {
    place: Place,
    /// The number of bytes of data.
    data: u64,
    /// The part of a request that is here already, and when it came.
    held: Vec<u8>,
    held_at_ns: u64,
    /// Whether it is known where requests begin, or was once.
    understood: bool,
    /// Whether requests may have been missed in the piece that is read.
    missed: bool,
}

impl Requests {
    /// Requests of a connection from its first byte, or from a later one.
    pub(crate) fn new(from_first_byte: bool) -> Requests {
        Requests {
            place: if from_first_byte { Place::First } else { Place::Lost { skipped: false } },
            data: 0,
            held: Vec::new(),
            held_at_ns: 0,
            understood: from_first_byte,
            missed: false,
        }
    }

    /// Whether the next byte begins a request.
    pub(crate) fn is_between(&self) -> bool {
        self.data == 0 && self.held.is_empty()
    }

    /// Bytes of memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.capacity()
    }

    /// Forget what is held, and search the next request.
    pub(crate) fn give_up(&mut self, why: &'static str, book: &mut Book) {
        self.held = Vec::new();
        self.lose(why, book);
    }

    /// No more bytes come.
    pub(crate) fn end(&mut self, book: &mut Book) {
        if !self.held.is_empty() {
            self.lose(reason::UNFINISHED, book);
        }
    }

    /// Read a piece; `take` gets each request and its time. Returns whether requests may have been missed.
    pub(crate) fn read(
        &mut self,
        piece: &Piece<'_>,
        book: &mut Book,
        take: &mut dyn FnMut(u64, Request<'_>, &mut Book),
    ) -> bool {
        self.missed = false;
        self.read_bytes(piece, book, take);
        let hole = piece.hole();
        if hole > self.data && self.place != Place::Unreadable {
            book.count("unseen bytes of clients", hole - self.data);
            let why = if piece.is_missing { reason::MISSING } else { reason::CUT };
            self.lose(if self.understood { why } else { reason::BEGAN_BEFORE }, book);
        }
        self.data = self.data.saturating_sub(hole);
        !self.missed
    }

    fn lose(&mut self, why: &'static str, book: &mut Book) {
        self.missed = true;
        self.held.clear();
        if !matches!(self.place, Place::Lost { skipped: true }) {
            book.leave_out(why);
        }
        self.place = Place::Lost { skipped: true };
    }

    fn read_bytes(
        &mut self,
        piece: &Piece<'_>,
        book: &mut Book,
        take: &mut dyn FnMut(u64, Request<'_>, &mut Book),
    ) {
        let mut bytes = piece.bytes;
        while !bytes.is_empty() {
            if self.data > 0 {
                let data = bytes.len().min(self.data.try_into().unwrap_or(usize::MAX));
                bytes = &bytes[data..];
                self.data -= data as u64;
                continue;
            }
            match self.place {
                Place::Unreadable => return,
                Place::First => self.place = first_place(bytes, book),
                Place::Lost { .. } => {
                    self.missed = true;
                    match begin_of_request(bytes) {
                        Some((0, place)) => self.place = place,
                        Some((at, _)) => {
                            self.skipped(book);
                            bytes = &bytes[at..];
                        }
                        None => {
                            self.skipped(book);
                            return;
                        }
                    }
                }
                Place::Text => {
                    bytes = &bytes[self.read_line(piece.at_ns, bytes, book, take)..];
                }
                Place::Binary => {
                    bytes = &bytes[self.read_head(piece.at_ns, bytes, book, take)..];
                }
            }
        }
    }

    fn skipped(&mut self, book: &mut Book) {
        let why = if self.understood { reason::NOT_UNDERSTOOD } else { reason::BEGAN_BEFORE };
        self.lose(why, book);
    }

    /// Add bytes to what is held. Returns when its first byte came.
    fn hold(&mut self, at_ns: u64, bytes: &[u8]) -> u64 {
        if self.held.is_empty() {
            self.held_at_ns = at_ns;
        }
        self.held.extend_from_slice(bytes);
        self.held_at_ns
    }

    /// Read a line, or a part of it. Returns how many bytes it has.
    fn read_line(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        book: &mut Book,
        take: &mut dyn FnMut(u64, Request<'_>, &mut Book),
    ) -> usize {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let at_ns = self.hold(at_ns, part);
        if end.is_none() {
            if self.held.len() > MOST_HELD_BYTES {
                self.lose(reason::NOT_UNDERSTOOD, book);
            }
            return part.len();
        }
        let line = std::mem::take(&mut self.held);
        match parse(&line) {
            Parsed::Command(command, _) => {
                self.data = data_bytes(&command);
                self.understood = true;
                take(at_ns, Request::Text(command), book);
            }
            // The server knows where the next request begins: so do we. Its reply is not awaited.
            Parsed::Refused(refusal, _) if refusal.swallow() > 0 => {
                book.leave_out(reason::NOT_UNDERSTOOD);
                self.data = refusal.swallow();
                self.missed = true;
            }
            _ => self.lose(reason::NOT_UNDERSTOOD, book),
        }
        part.len()
    }

    /// Read a header of the binary protocol with the extras and the key behind it, or a part of it.
    fn read_head(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        book: &mut Book,
        take: &mut dyn FnMut(u64, Request<'_>, &mut Book),
    ) -> usize {
        let before = self.held.len();
        let needed = HEADER_BYTES.saturating_sub(before);
        if needed > 0 {
            let part = &bytes[..needed.min(bytes.len())];
            self.hold(at_ns, part);
            if self.held.len() < HEADER_BYTES {
                return part.len();
            }
        }
        let Some(header) = Header::parse(&self.held).filter(|header| header.check().is_ok()) else {
            self.lose(reason::NOT_UNDERSTOOD, book);
            return needed;
        };
        let head = HEADER_BYTES + header.body_bytes() - header.value_bytes();
        let bytes = &bytes[needed..];
        let part = &bytes[..(head - self.held.len()).min(bytes.len())];
        self.held.extend_from_slice(part);
        if self.held.len() == head {
            let held = std::mem::take(&mut self.held);
            self.data = header.value_bytes() as u64;
            self.understood = true;
            if let Some(body) = header.body_without_value(&held) {
                take(self.held_at_ns, Request::Binary(header, body), book);
            }
        } else if head > MOST_HELD_BYTES {
            self.lose(reason::NOT_UNDERSTOOD, book);
        }
        needed + part.len()
    }
}

/// The data behind a command's line, with its end.
fn data_bytes(command: &Command<'_>) -> u64 {
    match command {
        Command::Store(store) => store.length + LINE_END_BYTES,
        Command::Meta(request) if request.verb == MetaVerb::Set => request.length + LINE_END_BYTES,
        _ => 0,
    }
}

fn first_place(bytes: &[u8], book: &mut Book) -> Place {
    match bytes {
        [REQUEST_MAGIC, ..] => Place::Binary,
        [0x16, 0x03, ..] => {
            book.leave_out(reason::TLS);
            Place::Unreadable
        }
        _ => Place::Text,
    }
}

/// Where a request seems to begin, and of which protocol.
fn begin_of_request(bytes: &[u8]) -> Option<(usize, Place)> {
    if is_binary_request(bytes) {
        return Some((0, Place::Binary));
    }
    let mut at = 0;
    loop {
        if are_requests(&bytes[at..]) {
            return Some((at, Place::Text));
        }
        at += line_end(&bytes[at..])? + 2;
    }
}

/// Where a line ends.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(2).position(|pair| pair == b"\r\n")
}

/// Whether the first lines are commands, as far as they are here: the text of a value may have one line that looks
/// like a command. A command on no key, such as `quit`, must be alone.
fn are_requests(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    for number in 0..MOST_LINES_CHECKED {
        match command(rest) {
            Some(found) if number == 0 && !found.on_keys => return found.end == bytes.len(),
            Some(found) if found.end < rest.len() => rest = &rest[found.end..],
            Some(_) => return true,
            None => return number > 0 && !rest.contains(&b'\n'),
        }
    }
    true
}

fn is_binary_request(bytes: &[u8]) -> bool {
    Header::parse(bytes).is_some_and(|header| {
        let sizes = header.check().is_ok() && header.body_bytes() as u64 <= MOST_VALUE_BYTES;
        sizes && header.verb().is_some()
    })
}

struct Found {
    /// Where the data behind the line ends.
    end: usize,
    on_keys: bool,
}

/// The command in a line of text, whose data ends as a line, as far as it is here.
fn command(bytes: &[u8]) -> Option<Found> {
    let Parsed::Command(command, line) = parse(bytes) else { return None };
    let text = bytes[..line].strip_suffix(b"\r\n")?;
    let is_text = text.iter().all(|byte| !byte.is_ascii_control());
    let data = data_bytes(&command);
    let end = (line as u64 + data).try_into().unwrap_or(usize::MAX);
    let ends = data == 0 || bytes.get(end - 2..end).is_none_or(|end| end == b"\r\n");
    let on_keys = !matches!(
        command,
        Command::Control { .. } | Command::Watch { .. } | Command::Stats { .. } | Command::Quit
    );
    (is_text && ends && data <= MOST_VALUE_BYTES).then_some(Found { end, on_keys })
}
