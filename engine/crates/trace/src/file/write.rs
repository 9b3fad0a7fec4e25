//! Writes a trace file, block by block.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;

use super::layout::{
    CHECKED_HEAD_BYTES, HAS_COUNT, HAS_LENGTH, HAS_OTHER_SOURCE, HAS_OUTCOME, HAS_STEP, HAS_TTL,
    HEAD_BYTES, IS_JOINED, MAGIC, MOST_NAME_BYTES, MOST_OPERATIONS, MOST_RECORDS, ORIGIN, Origin,
    RECORDS, SUCCEEDED, SUMMARY, Summary,
};
use super::read::Record;

/// Writes records in the order of their times. `finish` writes the end, without which the file is refused.
pub struct TraceWriter<W> {
    into: W,
    block: BlockInProgress,
    records: u64,
    bytes: u64,
}

impl<W: Write> TraceWriter<W> {
    pub fn new(into: W, origin: &Origin) -> io::Result<TraceWriter<W>> {
        let mut writer =
            TraceWriter { into, block: BlockInProgress::default(), records: 0, bytes: 0 };
        writer.put(&MAGIC)?;
        writer.document(ORIGIN, origin)?;
        Ok(writer)
    }

    /// Add a record. Its time is not before that of the one added last.
    pub fn add(&mut self, record: &Record<'_>) -> io::Result<()> {
        if !self.block.has_place(record) {
            self.end_block()?;
        }
        self.block.add(record)?;
        self.records += 1;
        Ok(())
    }

    /// Write the end. The summary's number of records is the writer's own. Returns it, and the size of the file.
    pub fn finish(mut self, summary: Summary) -> io::Result<(u64, u64)> {
        self.end_block()?;
        self.document(SUMMARY, &Summary { records: self.records, ..summary })?;
        self.into.flush()?;
        Ok((self.records, self.bytes))
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.count == 0 {
            return Ok(());
        }
        let block = std::mem::take(&mut self.block);
        let (timed, count) = (block.timed, block.count);
        self.put_block(RECORDS, timed, count, &block.content())
    }

    fn document(&mut self, kind: u8, document: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(document).expect("plain values");
        self.put_block(kind, false, 0, &text)
    }

    fn put_block(&mut self, kind: u8, timed: bool, records: u32, content: &[u8]) -> io::Result<()> {
        let mut head = [0; HEAD_BYTES];
        head[0] = kind;
        head[1] = u8::from(timed);
        head[4..8].copy_from_slice(&(content.len() as u32).to_le_bytes());
        head[8..12].copy_from_slice(&records.to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&head[..CHECKED_HEAD_BYTES]);
        sum.update(content);
        head[CHECKED_HEAD_BYTES..].copy_from_slice(&sum.finalize().to_le_bytes());
        self.put(&head)?;
        self.put(content)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.into.write_all(bytes)
    }
}

/// The records since the last block, with the names and keys that they use.
#[derive(Default)]
struct BlockInProgress {
    timed: bool,
    begins_ns: u64,
    last_ns: u64,
    count: u32,
    operations: Vec<String>,
    /// The operation and the client of the last record.
    source: (u8, Option<u32>),
    key_numbers: HashMap<(Vec<u8>, u32), u32>,
    keys: Vec<u8>,
    records: Vec<u8>,
}

impl BlockInProgress {
    fn has_place(&self, record: &Record<'_>) -> bool {
        let fits = self.count < MOST_RECORDS && self.timed == record.at_ns.is_some();
        let known = self.operations.iter().any(|name| name == record.operation);
        self.count == 0 || fits && (known || self.operations.len() < MOST_OPERATIONS)
    }

    fn add(&mut self, record: &Record<'_>) -> io::Result<()> {
        let refuse = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        let at_ns = record.at_ns.unwrap_or(0);
        if self.count == 0 {
            self.timed = record.at_ns.is_some();
            (self.begins_ns, self.last_ns) = (at_ns, at_ns);
        }
        let Some(step) = at_ns.checked_sub(self.last_ns) else {
            return refuse("a record's time is before that of the record above");
        };
        if record.key.is_empty() || record.key.len() > 255 {
            return refuse("a key is empty or longer than 255 bytes");
        }
        if record.operation.is_empty() || record.operation.len() > MOST_NAME_BYTES {
            return refuse("the name of an operation is empty or longer than 64 bytes");
        }
        let source = (self.operation(record.operation), record.client);
        let has_other_source = source != self.source;
        let key = self.key(record.key, record.key_bytes);
        let mut head = 0;
        let facts = [
            (step > 0, HAS_STEP),
            (record.length.is_some(), HAS_LENGTH),
            (record.ttl_s > 0, HAS_TTL),
            (record.count != 1, HAS_COUNT),
            (record.joined, IS_JOINED),
            (record.succeeded.is_some(), HAS_OUTCOME),
            (record.succeeded == Some(true), SUCCEEDED),
            (has_other_source, HAS_OTHER_SOURCE),
        ];
        facts.into_iter().filter(|(is, _)| *is).for_each(|(_, bit)| head |= bit);
        let into = &mut self.records;
        into.push(head);
        if step > 0 {
            put_number(into, step);
        }
        put_number(into, u64::from(key));
        if has_other_source {
            into.push(source.0);
            put_number(into, source.1.map_or(0, |client| u64::from(client) + 1));
        }
        if let Some(length) = record.length {
            put_number(into, u64::from(length));
        }
        if record.ttl_s > 0 {
            put_number(into, u64::from(record.ttl_s));
        }
        if record.count != 1 {
            put_number(into, u64::from(record.count));
        }
        self.source = source;
        self.last_ns = at_ns;
        self.count += 1;
        Ok(())
    }

    fn operation(&mut self, name: &str) -> u8 {
        let known = self.operations.iter().position(|each| each == name);
        known.unwrap_or_else(|| {
            self.operations.push(name.to_owned());
            self.operations.len() - 1
        }) as u8
    }

    fn key(&mut self, key: &[u8], key_bytes: Option<u32>) -> u32 {
        let original = key_bytes.unwrap_or(0);
        let next = self.key_numbers.len() as u32;
        let keys = &mut self.keys;
        *self.key_numbers.entry((key.to_vec(), original)).or_insert_with(|| {
            keys.push(key.len() as u8);
            keys.extend_from_slice(key);
            put_number(keys, u64::from(original));
            next
        })
    }

    fn content(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(self.keys.len() + self.records.len() + 1024);
        content.extend_from_slice(&self.begins_ns.to_le_bytes());
        put_number(&mut content, self.operations.len() as u64);
        for name in &self.operations {
            content.push(name.len() as u8);
            content.extend_from_slice(name.as_bytes());
        }
        put_number(&mut content, self.key_numbers.len() as u64);
        content.extend_from_slice(&self.keys);
        content.extend_from_slice(&self.records);
        content
    }
}

/// Seven bits a byte, the lowest first; the highest bit of a byte says that another follows.
fn put_number(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
