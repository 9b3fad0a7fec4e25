//! The replies in the bytes of a server, of which some may be missing, and to which requests they belong.
//!
//! When it is unclear to which request a reply belongs, matching stops, so that no operation gets a wrong outcome. It
//! begins again when no reply seems to be under way; `proof` then says from when on outcomes are certain.

use std::collections::VecDeque;

use cachemark_protocol::text::reply::{Reply, parse};
use cachemark_protocol::words::Words;

use crate::awaited::{Awaited, Binary, Meta};
use crate::binary_reply::{HEADER_BYTES, Head};
use crate::book::{Book, Place};
use crate::meta_reply::MetaReply;
use crate::proof::Proof;
use crate::stream::Piece;

const MOST_LINE_BYTES: usize = 1 << 14;
const LINE_END_BYTES: u64 = 2;
/// The line `END`.
const END_BYTES: u64 = 5;
/// The most requests that may await their replies. If a client sends more, matching stops.
const MOST_AWAITED: usize = 1 << 16;
const OUT_OF_STEP: &str = "times that replies could not be matched";

/// A reply that does not fit the awaited request.
struct OutOfStep;

#[derive(Debug, Default)]
pub(crate) struct Replies {
    in_step: bool,
    awaited: VecDeque<Awaited>,
    /// The number of bytes of data.
    data: u64,
    held: Vec<u8>,
    /// Since the last meta reply that was not quiet, one came that could be to several commands.
    is_unsure: bool,
    proof: Proof,
}

impl Replies {
    pub(crate) fn is_in_step(&self) -> bool {
        self.in_step
    }

    /// The next byte of the server begins the reply to the next request.
    pub(crate) fn begin(&mut self) {
        *self = Replies { in_step: true, proof: Proof::certain(), ..Replies::default() };
    }

    /// The next byte of the server seems to begin the reply to the next request. Outcomes follow once that is proved.
    pub(crate) fn try_to_begin(&mut self) {
        let proof = std::mem::take(&mut self.proof).of_next_try();
        *self = Replies { in_step: true, proof, ..Replies::default() };
    }

    /// The client begins to ask again.
    pub(crate) fn note_turn(&mut self) {
        self.proof.note_turn(self.awaited.is_empty());
    }

    /// Bytes of memory, about.
    pub(crate) fn held_bytes(&self) -> usize {
        let awaited: usize = self.awaited.iter().map(Awaited::held_bytes).sum();
        awaited + self.held.capacity()
    }

    /// Nothing is known about the requests so far.
    pub(crate) fn stop(&mut self, book: &mut Book) {
        if self.in_step && !self.awaited.is_empty() {
            book.count(OUT_OF_STEP, 1);
        }
        *self = Replies { proof: std::mem::take(&mut self.proof), ..Replies::default() };
    }

    /// The outcome of an operation, if it is certain to which one the reply belongs.
    fn settle(&self, place: Place, succeeded: Option<bool>, length: Option<u32>, book: &mut Book) {
        if self.proof.is_complete() {
            book.settle(place, succeeded, length);
        }
    }

    pub(crate) fn await_reply(&mut self, awaited: Awaited, book: &mut Book) {
        if !self.in_step {
            return;
        }
        self.awaited.push_back(awaited);
        if self.awaited.len() > MOST_AWAITED {
            self.stop(book);
        }
    }

    pub(crate) fn read(&mut self, piece: &Piece<'_>, book: &mut Book) {
        let mut bytes = piece.bytes;
        while self.in_step && !bytes.is_empty() {
            let read = if self.data > 0 {
                let data = bytes.len().min(self.data.try_into().unwrap_or(usize::MAX));
                self.data -= data as u64;
                Ok(data)
            } else if matches!(self.awaited.front(), Some(Awaited::Binary(_))) {
                self.read_head(bytes, book)
            } else {
                self.read_line(bytes, book)
            };
            match read {
                Ok(read) => bytes = &bytes[read..],
                Err(OutOfStep) => self.stop(book),
            }
        }
        let hole = piece.hole();
        let behind_data = hole.saturating_sub(self.data);
        self.data = self.data.saturating_sub(hole);
        // A value whose end was cut off has nothing behind it but the end of the reply, if the length says so.
        if behind_data == END_BYTES && self.held.is_empty() && self.has_all_values() {
            self.awaited.pop_front();
        } else if behind_data > 0 {
            self.stop(book);
        }
    }

    fn has_all_values(&self) -> bool {
        matches!(self.awaited.front(), Some(Awaited::Values { keys, passed }) if *passed == keys.len())
    }

    fn read_line(&mut self, bytes: &[u8], book: &mut Book) -> Result<usize, OutOfStep> {
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        self.held.extend_from_slice(part);
        if end.is_some() {
            let line = std::mem::take(&mut self.held);
            self.line(line.strip_suffix(b"\r\n").ok_or(OutOfStep)?, book)?;
        } else if self.held.len() > MOST_LINE_BYTES {
            return Err(OutOfStep);
        }
        Ok(part.len())
    }

    fn line(&mut self, line: &[u8], book: &mut Book) -> Result<(), OutOfStep> {
        match self.awaited.front().ok_or(OutOfStep)? {
            Awaited::Values { .. } => return self.values_line(line, book),
            Awaited::Line(place) => {
                let succeeded = match plain(line)? {
                    Plain::Done(succeeded) => succeeded,
                    Plain::Error => false,
                    Plain::Other if place.is_none() => true,
                    _ => return Err(OutOfStep),
                };
                if let Some(place) = *place {
                    self.settle(place, Some(succeeded), None, book);
                }
            }
            Awaited::Lines => {
                let ends = [&b"END"[..], b"OK", b"RESET", b"ERROR", b"BUSY"];
                let is_last = ends.iter().any(|end| line.starts_with(end))
                    || line.starts_with(b"CLIENT_ERROR")
                    || line.starts_with(b"SERVER_ERROR");
                if !is_last {
                    return Ok(());
                }
            }
            Awaited::Meta(_) => return self.meta_line(line, book),
            Awaited::Binary(_) => return Err(OutOfStep),
        }
        self.awaited.pop_front();
        Ok(())
    }

    /// A line of the reply to a get: a value, whose keys before it missed, or the end.
    fn values_line(&mut self, line: &[u8], book: &mut Book) -> Result<(), OutOfStep> {
        let Some(Awaited::Values { keys, mut passed }) = self.awaited.pop_front() else {
            return Err(OutOfStep);
        };
        let value = value_line(line).transpose()?;
        let found = match value {
            Some((key, bytes)) => {
                let found = keys[passed..].iter().position(|(asked, _)| **asked == *key);
                self.proof.fits(key);
                self.data = bytes + LINE_END_BYTES;
                Some(passed + found.ok_or(OutOfStep)?)
            }
            None => None,
        };
        let is_error = value.is_none() && is_error_and_no_end(line)?;
        for (_, missed) in &keys[passed..found.unwrap_or(keys.len())] {
            if !is_error {
                self.settle(*missed, Some(false), None, book);
            }
        }
        if let (Some(at), Some((_, bytes))) = (found, value) {
            self.settle(keys[at].1, Some(true), u32::try_from(bytes).ok(), book);
            passed = at + 1;
            self.awaited.push_front(Awaited::Values { keys, passed });
        }
        Ok(())
    }

    /// A reply to one of the meta commands up to the first that is not quiet. Those before it had no reply: misses of
    /// reads, and other commands that were done.
    fn meta_line(&mut self, line: &[u8], book: &mut Book) -> Result<(), OutOfStep> {
        // An error names no command.
        let reply = MetaReply::parse(line).ok_or(OutOfStep)?;
        let is_noop = reply.word == b"MN";
        loop {
            let Some(Awaited::Meta(meta)) = self.awaited.pop_front() else { return Err(OutOfStep) };
            if meta.is_answered_by(&reply) {
                self.data = reply.value_bytes.map_or(0, |bytes| bytes + LINE_END_BYTES);
                let identity = if reply.key.is_empty() { reply.opaque } else { reply.key };
                self.proof.fits(identity);
                // One of several alike was answered: it is unknown which.
                let is_unsure = meta.quiet && !meta.has_identity();
                self.is_unsure = meta.quiet && (self.is_unsure || is_unsure);
                if let (Some(place), false) = (meta.place, is_unsure) {
                    self.settle(place, Some(reply.succeeded()), reply.length(), book);
                }
                return Ok(());
            }
            if !meta.quiet {
                return Err(OutOfStep);
            }
            let is_sure = meta.has_identity() || is_noop && !self.is_unsure;
            if let (Some(place), true) = (meta.place, is_sure) {
                self.settle(place, Some(!meta.is_read), None, book);
            }
        }
    }

    /// Read the head of a binary reply with its extras and its key, or a part of it.
    fn read_head(&mut self, bytes: &[u8], book: &mut Book) -> Result<usize, OutOfStep> {
        let wanted = match self.held.first_chunk::<HEADER_BYTES>() {
            None => HEADER_BYTES,
            Some(header) => HEADER_BYTES + Head::of(header).ok_or(OutOfStep)?.before_value(),
        };
        let part = &bytes[..(wanted - self.held.len()).min(bytes.len())];
        self.held.extend_from_slice(part);
        if let Some(header) = self.held.first_chunk::<HEADER_BYTES>() {
            let head = Head::of(header).ok_or(OutOfStep)?;
            if self.held.len() == HEADER_BYTES + head.before_value() {
                let held = std::mem::take(&mut self.held);
                self.data = head.value_bytes();
                self.binary(&head, &held[HEADER_BYTES + head.extras_bytes..], book)?;
            }
        }
        Ok(part.len())
    }

    /// The same as for the meta protocol. Errors of a read are no misses.
    fn binary(&mut self, head: &Head, key: &[u8], book: &mut Book) -> Result<(), OutOfStep> {
        loop {
            let Some(Awaited::Binary(asked)) = self.awaited.pop_front() else {
                return Err(OutOfStep);
            };
            if head.answers(&asked, key) {
                let is_unsure = asked.quiet && key.is_empty() && self.is_one_of_several(&asked);
                self.is_unsure = asked.quiet && (self.is_unsure || is_unsure);
                match head.opaque {
                    0 => self.proof.fits(key),
                    opaque => self.proof.fits(&opaque.to_be_bytes()),
                }
                if let (Some(place), false) = (asked.place, self.is_unsure) {
                    self.settle(place, head.outcome(&asked), head.length(&asked), book);
                }
                // The reply to `stat` are many, the last of them without a key.
                if asked.opcode == STAT && !key.is_empty() {
                    self.awaited.push_front(Awaited::Binary(asked));
                }
                return Ok(());
            }
            if !asked.quiet {
                return Err(OutOfStep);
            }
            if let (Some(place), false) = (asked.place, self.is_unsure) {
                self.settle(place, Some(!asked.is_read), None, book);
            }
        }
    }

    /// Whether a reply without a key may also belong to a later quiet request.
    fn is_one_of_several(&self, asked: &Binary) -> bool {
        let quiet = self.awaited.iter().map_while(|awaited| match awaited {
            Awaited::Binary(other) if other.quiet => Some(other),
            _ => None,
        });
        let is_alike =
            |other: &Binary| (other.opcode, other.opaque) == (asked.opcode, asked.opaque);
        quiet
            .take(MOST_COMPARED)
            .enumerate()
            .any(|(number, other)| is_alike(other) || number + 1 == MOST_COMPARED)
    }
}

const STAT: u8 = 0x10;
/// How many quiet requests are compared with one that was answered.
const MOST_COMPARED: usize = 1024;

impl Meta {
    fn has_identity(&self) -> bool {
        !self.opaque.is_empty() || !self.key.is_empty()
    }

    fn is_answered_by(&self, reply: &MetaReply<'_>) -> bool {
        let is_noop = self.place.is_none() && !self.quiet;
        let fits = (reply.word == b"MN") <= is_noop;
        fits && *self.opaque == *reply.opaque && *self.key == *reply.key
    }
}

/// The key and the length of a `VALUE` line; `None` if it is another line.
fn value_line(line: &[u8]) -> Option<Result<(&[u8], u64), OutOfStep>> {
    let mut words = Words::of(line.strip_prefix(b"VALUE ")?);
    let mut word = || words.next().ok_or(OutOfStep);
    Some((|| {
        let (key, _flags, bytes) = (word()?, word()?, word()?);
        let bytes = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<u32>().ok());
        Ok((key, u64::from(bytes.ok_or(OutOfStep)?)))
    })())
}

/// A reply of one line.
enum Plain {
    End,
    Done(bool),
    /// The reply to a command on no key.
    Other,
    Error,
}

/// Whether a line is an error; if it is no end either, it is not the reply to a get.
fn is_error_and_no_end(line: &[u8]) -> Result<bool, OutOfStep> {
    match plain(line)? {
        Plain::End => Ok(false),
        Plain::Error => Ok(true),
        _ => Err(OutOfStep),
    }
}

fn plain(line: &[u8]) -> Result<Plain, OutOfStep> {
    let whole = [line, b"\r\n"].concat();
    let Ok(Some((reply, _))) = parse(&whole) else { return Err(OutOfStep) };
    Ok(match reply {
        Reply::End => Plain::End,
        Reply::Stored | Reply::Deleted | Reply::Touched | Reply::Number(_) => Plain::Done(true),
        Reply::NotStored | Reply::Exists | Reply::NotFound => Plain::Done(false),
        Reply::Ok | Reply::Version => Plain::Other,
        Reply::Error(_) => Plain::Error,
        Reply::Value { .. } => return Err(OutOfStep),
    })
}
