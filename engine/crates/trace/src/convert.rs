//! From any format to cachemark's own or to CSV, one event at a time.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::anonymous::{Anonymiser, Sampler, rounded_size};
use crate::csv::quoted;
use crate::event::text_key;
use crate::events::{Events, TraceFacts, record_of};
use crate::file::{Keys, Origin, Record, Summary, TraceWriter};
use crate::lines;
use crate::options::ImportOptions;

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    #[default]
    Cachemark,
    Csv,
}

/// How a trace is written.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub output: Output,
    /// Whether keys are renamed.
    pub anonymous: bool,
    /// Whether sizes of values are rounded up.
    pub rounded: bool,
    /// One key of `sampled` is kept.
    pub sampled: u32,
    /// Whether lines that are not understood are counted, instead of refused.
    pub tolerant: bool,
    /// The source, if it is not a file of a format.
    pub source: Option<String>,
}

/// The result of a conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Converted {
    pub format: &'static str,
    pub origin: Origin,
    pub lines: u64,
    pub records: u64,
    pub bytes: u64,
    pub summary: Summary,
}

/// The caller's facts at the end of its input.
pub type Ending<'a> = dyn FnMut(&mut Summary) + 'a;

/// Convert a file. An error names the file and the line, or the output.
pub fn convert_file(
    path: &Path,
    options: &ImportOptions,
    conversion: &Conversion,
    into: impl Write,
) -> Result<Converted, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let mut from =
        lines::open(path).map_err(|error| place(format!("it cannot be read: {error}")))?;
    convert(&mut *from, options, conversion, into, &mut |_| ()).map_err(place)
}

/// Convert what a reader has. `ending` adds to the summary. An error names the line or the output.
pub fn convert(
    from: &mut dyn BufRead,
    options: &ImportOptions,
    conversion: &Conversion,
    into: impl Write,
    ending: &mut Ending<'_>,
) -> Result<Converted, String> {
    let events = Events::open(from, options)?;
    let mut events = if conversion.tolerant { events.tolerant() } else { events };
    let mut writing = Writing::begin(conversion, origin(&events, conversion)?, into)?;
    while let Some(event) = events.next()? {
        writing.add(&record_of(&event))?;
    }
    let facts = events.facts();
    let mut summary = summary(facts);
    ending(&mut summary);
    writing.finish(facts.format, facts.lines, summary)
}

/// Requests that are in no format of files, such as those in packets.
pub trait Requests {
    /// The next operation, in the order of their times; `None` after the last.
    fn next(&mut self) -> Result<Option<Record<'_>>, String>;

    /// The facts after the last one: how many lines or packets were read, and what is missing.
    fn ending(&mut self) -> (u64, Summary);

    /// Whether they already belong to the keys that a sample takes.
    fn are_sampled(&self) -> bool {
        false
    }
}

/// Write requests. A key that no format of traces can hold gets another name.
pub fn convert_requests(
    requests: &mut dyn Requests,
    format: &'static str,
    conversion: &Conversion,
    into: impl Write,
) -> Result<Converted, String> {
    let origin = Origin {
        source: conversion.source.clone().unwrap_or_else(|| format.to_owned()),
        keys: if conversion.anonymous { Keys::Anonymous } else { Keys::Plain },
        sampled: conversion.sampled,
    };
    let sampled = if requests.are_sampled() { 1 } else { conversion.sampled };
    let mut writing = Writing::begin(&Conversion { sampled, ..conversion.clone() }, origin, into)?;
    while let Some(record) = requests.next()? {
        let name = text_key(record.key);
        if conversion.anonymous || name.as_bytes() == record.key {
            writing.add(&record)?;
        } else {
            let key_bytes = record.key_bytes.or(Some(record.key.len() as u32));
            writing.add(&Record { key: name.as_bytes(), key_bytes, ..record })?;
        }
    }
    let (lines, summary) = requests.ending();
    writing.finish(format, lines, summary)
}

/// A trace that is being written: some keys, perhaps with other names, and times since the first record.
struct Writing<W: Write> {
    writer: Writer<BufWriter<W>>,
    choice: Choice,
    rounded: bool,
    origin: Origin,
    first_ns: Option<u64>,
}

impl<W: Write> Writing<W> {
    fn begin(conversion: &Conversion, origin: Origin, into: W) -> Result<Writing<W>, String> {
        let into = BufWriter::with_capacity(1 << 18, into);
        let writer = Writer::new(conversion.output, &origin, into).map_err(unwritable)?;
        let (choice, rounded) = (Choice::new(conversion), conversion.rounded);
        Ok(Writing { writer, choice, rounded, origin, first_ns: None })
    }

    fn add(&mut self, record: &Record<'_>) -> Result<(), String> {
        let Some(record) = self.choice.chosen(record) else { return Ok(()) };
        let length =
            record.length.map(|bytes| if self.rounded { rounded_size(bytes) } else { bytes });
        let began_ns = *self.first_ns.get_or_insert(record.at_ns.unwrap_or(0));
        let at_ns = record.at_ns.map(|at_ns| at_ns.saturating_sub(began_ns));
        self.writer.add(&Record { at_ns, length, ..record })
    }

    fn finish(
        self,
        format: &'static str,
        lines: u64,
        mut summary: Summary,
    ) -> Result<Converted, String> {
        summary.operations = self.choice.operations;
        let (records, bytes) = self.writer.finish(summary.clone()).map_err(unwritable)?;
        summary.records = records;
        Ok(Converted { format, origin: self.origin, lines, records, bytes, summary })
    }
}

fn unwritable(error: io::Error) -> String {
    format!("the output cannot be written: {error}")
}

fn origin(events: &Events<'_>, conversion: &Conversion) -> Result<Origin, String> {
    let facts = events.facts();
    let before = facts.origin.clone().unwrap_or_default();
    let source = conversion.source.clone().unwrap_or_else(|| facts.format.to_owned());
    Ok(Origin {
        source: if facts.origin.is_some() { before.source } else { source },
        keys: if conversion.anonymous { Keys::Anonymous } else { events.keys() },
        sampled: before
            .sampled
            .checked_mul(conversion.sampled)
            .ok_or("the sample would have one key of more than 4 billion")?,
    })
}

pub(crate) fn summary(facts: &TraceFacts) -> Summary {
    Summary {
        left_out: facts.left_out.clone(),
        other_lines: facts.other_lines.clone(),
        server: facts.server.clone(),
        reconnects: facts.reconnects,
        unused_columns: facts.unused_columns.clone(),
        ..Summary::default()
    }
}

/// Which records are written, and with which keys.
struct Choice {
    anonymiser: Option<Anonymiser>,
    sampler: Sampler,
    operations: BTreeMap<String, u64>,
    /// The new name of the last key.
    name: String,
}

impl Choice {
    fn new(conversion: &Conversion) -> Choice {
        Choice {
            anonymiser: conversion.anonymous.then(Anonymiser::default),
            sampler: Sampler::new(conversion.sampled),
            operations: BTreeMap::new(),
            name: String::new(),
        }
    }

    /// The record as it is written; `None` if its key is not in the sample.
    fn chosen<'a>(&'a mut self, record: &Record<'a>) -> Option<Record<'a>> {
        let more = u64::from(record.count);
        match self.operations.get_mut(record.operation) {
            Some(count) => *count += more,
            None => drop(self.operations.insert(record.operation.to_owned(), more)),
        }
        if !self.sampler.takes(record.key) {
            return None;
        }
        let Some(anonymiser) = &mut self.anonymiser else { return Some(*record) };
        self.name = anonymiser.renamed(record.key);
        let key_bytes = record.key_bytes.or(Some(record.key.len() as u32));
        Some(Record { key: self.name.as_bytes(), key_bytes, ..*record })
    }
}

enum Writer<W: Write> {
    Cachemark(TraceWriter<W>),
    Csv { into: W, bytes: u64, records: u64 },
}

const HEADER: &str = "time,op,key,size,ttl,key_size,count\n";

impl<W: Write> Writer<W> {
    fn new(output: Output, origin: &Origin, mut into: W) -> io::Result<Writer<W>> {
        match output {
            Output::Cachemark => TraceWriter::new(into, origin).map(Writer::Cachemark),
            Output::Csv => {
                into.write_all(HEADER.as_bytes())?;
                Ok(Writer::Csv { into, bytes: HEADER.len() as u64, records: 0 })
            }
        }
    }

    fn add(&mut self, record: &Record<'_>) -> Result<(), String> {
        match self {
            Writer::Cachemark(writer) => writer.add(record).map_err(unwritable),
            Writer::Csv { into, bytes, records } => {
                let line = csv_line(record);
                *bytes += line.len() as u64;
                *records += 1;
                into.write_all(line.as_bytes()).map_err(unwritable)
            }
        }
    }

    /// The number of records and of bytes that were written.
    fn finish(self, summary: Summary) -> io::Result<(u64, u64)> {
        match self {
            Writer::Cachemark(writer) => writer.finish(summary),
            Writer::Csv { mut into, bytes, records } => {
                into.flush()?;
                Ok((records, bytes))
            }
        }
    }
}

fn csv_line(record: &Record<'_>) -> String {
    let key = String::from_utf8_lossy(record.key);
    let text = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    let second = 1_000_000_000;
    let at = |ns: u64| format!("{}.{:09}", ns / second, ns % second);
    format!(
        "{},{},{},{},{},{},{}\n",
        record.at_ns.map(at).unwrap_or_default(),
        quoted(record.operation),
        quoted(&key),
        text(record.length),
        record.ttl_s,
        text(record.key_bytes),
        record.count
    )
}
