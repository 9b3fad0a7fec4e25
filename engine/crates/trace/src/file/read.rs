//! Reads a trace file, block by block.

use std::io::{self, Read};

use serde::de::DeserializeOwned;

use crate::event::{check_key, foreign_action};

use super::layout::{
    CHECKED_HEAD_BYTES, HAS_COUNT, HAS_LENGTH, HAS_OTHER_SOURCE, HAS_OUTCOME, HAS_STEP, HAS_TTL,
    HEAD_BYTES, IS_JOINED, MAGIC, MOST_CONTENT_BYTES, MOST_NAME_BYTES, MOST_OPERATIONS,
    MOST_RECORDS, ORIGIN, Origin, RECORDS, SUCCEEDED, SUMMARY, Summary,
};

/// An operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Since the first record.
    pub at_ns: Option<u64>,
    pub operation: &'a str,
    pub key: &'a [u8],
    /// The original length of a key that the file has in another one.
    pub key_bytes: Option<u32>,
    /// The size of the value, if known.
    pub length: Option<u32>,
    /// 0: it does not expire.
    pub ttl_s: u32,
    /// How often the operation is repeated.
    pub count: u32,
    /// The number of the connection.
    pub client: Option<u32>,
    /// A read that hit, or a write that was done.
    pub succeeded: Option<bool>,
    /// A further key of the request before.
    pub joined: bool,
}

/// A file that is read. Only one block is in memory.
#[derive(Debug)]
pub struct TraceReader<R> {
    from: R,
    origin: Origin,
    summary: Option<Summary>,
    content: Vec<u8>,
    tables: Tables,
    blocks: u64,
    records: u64,
}

const CUT_OFF: &str = "the file ends before its end: the recording or a copy was cut off";

impl<R: Read> TraceReader<R> {
    /// Read the beginning of a file. An error names the block.
    pub fn new(mut from: R) -> Result<TraceReader<R>, String> {
        let mut magic = [0; MAGIC.len()];
        read_whole(&mut from, &mut magic).map_err(|error| format!("block 0: {error}"))?;
        if magic[..7] != MAGIC[..7] {
            return Err("block 0: it is no trace of cachemark".to_owned());
        }
        if magic[7] != MAGIC[7] {
            return Err(format!(
                "block 0: version {} of the format; this cachemark reads version {}",
                magic[7], MAGIC[7]
            ));
        }
        let mut reader = TraceReader {
            from,
            origin: Origin::default(),
            summary: None,
            content: Vec::new(),
            tables: Tables::default(),
            blocks: 0,
            records: 0,
        };
        let head = reader.read_block()?;
        if head.kind != ORIGIN {
            return Err(reader.at("it should say where the trace is from"));
        }
        reader.origin = reader.document()?;
        Ok(reader)
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The summary at the end of the file; `None` before it was read.
    pub fn summary(&self) -> Option<&Summary> {
        self.summary.as_ref()
    }

    /// The next block of records; `None` after the last one. An error names the block.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, String> {
        if self.summary.is_some() {
            return Ok(None);
        }
        let head = self.read_block()?;
        match head.kind {
            RECORDS => {
                self.records += u64::from(head.records);
                let begun = self.tables.read(&self.content, head);
                let (cursor, begins_ns) = begun.map_err(|error| self.at(&error))?;
                let (tables, content) = (&self.tables, &*self.content);
                Ok(Some(Block::new(tables, content, head, (cursor, begins_ns), self.blocks)))
            }
            SUMMARY => {
                let summary: Summary = self.document()?;
                if summary.records != self.records {
                    let text =
                        format!("{} records, but there are {}", summary.records, self.records);
                    return Err(self.at(&text));
                }
                if !matches!(self.from.read(&mut [0]), Ok(0)) {
                    return Err(self.at("something follows the end of the trace"));
                }
                self.summary = Some(summary);
                Ok(None)
            }
            other => Err(self.at(&format!("kind {other} is unknown"))),
        }
    }

    fn at(&self, error: &str) -> String {
        format!("block {}: {error}", self.blocks)
    }

    fn document<T: DeserializeOwned>(&self) -> Result<T, String> {
        let first_line = |error: serde_json::Error| error.to_string().replace('\n', " ");
        serde_json::from_slice(&self.content).map_err(|error| self.at(&first_line(error)))
    }

    fn read_block(&mut self) -> Result<Head, String> {
        self.blocks += 1;
        let mut bytes = [0; HEAD_BYTES];
        read_whole(&mut self.from, &mut bytes).map_err(|error| self.at(&error))?;
        let head = Head::of(&bytes);
        if head.content_bytes > MOST_CONTENT_BYTES || head.records > MOST_RECORDS {
            return Err(self.at("its head is damaged"));
        }
        self.content.clear();
        let part = (&mut self.from).take(u64::from(head.content_bytes));
        let read = { part }.read_to_end(&mut self.content);
        match read {
            Ok(read) if read == head.content_bytes as usize => {}
            Ok(_) => return Err(self.at(CUT_OFF)),
            Err(error) => return Err(self.at(&format!("it cannot be read: {error}"))),
        }
        let mut sum = crc32fast::Hasher::new();
        sum.update(&bytes[..CHECKED_HEAD_BYTES]);
        sum.update(&self.content);
        if sum.finalize() != head.checksum {
            return Err(self.at("its checksum is wrong: the file is damaged"));
        }
        Ok(head)
    }
}

#[derive(Clone, Copy)]
struct Head {
    kind: u8,
    timed: bool,
    content_bytes: u32,
    records: u32,
    checksum: u32,
}

impl Head {
    fn of(bytes: &[u8; HEAD_BYTES]) -> Head {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        Head {
            kind: bytes[0],
            timed: bytes[1] == 1,
            content_bytes: number(4),
            records: number(8),
            checksum: number(12),
        }
    }
}

fn read_whole(from: &mut impl Read, into: &mut [u8]) -> Result<(), String> {
    from.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CUT_OFF.to_owned(),
        _ => format!("it cannot be read: {error}"),
    })
}

/// The names and keys of a block.
#[derive(Debug, Default)]
struct Tables {
    operations: Vec<String>,
    /// Where each key is in the content, and its original length, 0 if that is its own.
    keys: Vec<(u32, u8, u32)>,
}

const DAMAGED: &str = "its content is damaged";

impl Tables {
    /// Read the tables. Returns where the records begin and the time of the first.
    fn read(&mut self, content: &[u8], head: Head) -> Result<(usize, u64), String> {
        let mut cursor = Cursor { content, at: 0 };
        let begins = cursor.bytes(8)?;
        let begins_ns = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| begins[at]));
        self.operations.clear();
        let operations = cursor.number()?;
        if operations > MOST_OPERATIONS as u64 {
            return Err(DAMAGED.to_owned());
        }
        for _ in 0..operations {
            let length = usize::from(cursor.byte()?);
            let name = std::str::from_utf8(cursor.bytes(length)?).map_err(|_| DAMAGED)?;
            if name.is_empty() || length > MOST_NAME_BYTES {
                return Err(DAMAGED.to_owned());
            }
            self.operations.push(foreign_action(name)?.name().to_owned());
        }
        self.keys.clear();
        let keys = cursor.number()?;
        if keys > u64::from(head.records) {
            return Err(DAMAGED.to_owned());
        }
        for _ in 0..keys {
            let length = cursor.byte()?;
            let place = cursor.at as u32;
            let key = std::str::from_utf8(cursor.bytes(usize::from(length))?);
            check_key(key.map_err(|_| "a key is not UTF-8")?)?;
            self.keys.push((place, length, cursor.number32()?));
        }
        Ok((cursor.at, begins_ns))
    }
}

/// The records of a block, in their order.
pub struct Block<'a> {
    tables: &'a Tables,
    cursor: Cursor<'a>,
    number: u64,
    timed: bool,
    at_ns: u64,
    source: (usize, Option<u32>),
    left: u32,
}

impl<'a> Block<'a> {
    fn new(
        tables: &'a Tables,
        content: &'a [u8],
        head: Head,
        (at, at_ns): (usize, u64),
        number: u64,
    ) -> Block<'a> {
        let cursor = Cursor { content, at };
        Block {
            tables,
            cursor,
            number,
            timed: head.timed,
            at_ns,
            source: (0, None),
            left: head.records,
        }
    }

    /// The number of the block in the file, for errors.
    pub fn number(&self) -> u64 {
        self.number
    }

    #[inline]
    fn record(&mut self) -> Result<Record<'a>, &'static str> {
        let content = self.cursor.content;
        let cursor = &mut self.cursor;
        let head = cursor.byte()?;
        if head & HAS_STEP != 0 {
            self.at_ns = self.at_ns.checked_add(cursor.number()?).ok_or(DAMAGED)?;
        }
        let key = cursor.number()? as usize;
        let &(place, length, original) = self.tables.keys.get(key).ok_or(DAMAGED)?;
        if head & HAS_OTHER_SOURCE != 0 {
            self.source = (usize::from(cursor.byte()?), cursor.number32()?.checked_sub(1));
        }
        let mut optional =
            |bit: u8| if head & bit == 0 { Ok(None) } else { cursor.number32().map(Some) };
        Ok(Record {
            at_ns: self.timed.then_some(self.at_ns),
            operation: self.tables.operations.get(self.source.0).ok_or(DAMAGED)?,
            key: &content[place as usize..place as usize + usize::from(length)],
            key_bytes: (original > 0).then_some(original),
            length: optional(HAS_LENGTH)?,
            ttl_s: optional(HAS_TTL)?.unwrap_or(0),
            count: optional(HAS_COUNT)?.unwrap_or(1),
            client: self.source.1,
            succeeded: (head & HAS_OUTCOME != 0).then_some(head & SUCCEEDED != 0),
            joined: head & IS_JOINED != 0,
        })
    }
}

impl<'a> Iterator for Block<'a> {
    type Item = Result<Record<'a>, String>;

    /// The next record. After an error there are no more.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let damaged = if self.left == 0 {
            // A block with more bytes than records was not written by cachemark.
            (self.cursor.at < self.cursor.content.len()).then_some(DAMAGED)?
        } else {
            self.left -= 1;
            match self.record() {
                Ok(record) => return Some(Ok(record)),
                Err(error) => error,
            }
        };
        self.left = 0;
        self.cursor.at = self.cursor.content.len();
        Some(Err(format!("block {}: {damaged}", self.number)))
    }
}

struct Cursor<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    #[inline]
    fn byte(&mut self) -> Result<u8, &'static str> {
        let byte = *self.content.get(self.at).ok_or(DAMAGED)?;
        self.at += 1;
        Ok(byte)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let bytes = self.content.get(self.at..self.at + length).ok_or(DAMAGED)?;
        self.at += length;
        Ok(bytes)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(DAMAGED)
    }

    #[inline]
    fn number32(&mut self) -> Result<u32, &'static str> {
        self.number().and_then(|number| u32::try_from(number).map_err(|_| DAMAGED))
    }
}
