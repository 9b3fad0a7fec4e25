//! From any format to cachemark's own or to CSV, one event at a time.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::anonymous::{Anonymiser, Sampler};
use crate::event::{Action, TraceEvent};
use crate::events::{Events, TraceFacts};
use crate::file::{Keys, Origin, Record, Summary, TraceWriter};
use crate::lines;
use crate::options::ImportOptions;

/// The format of what is written.
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
    /// One key of so many is kept.
    pub sampled: u32,
    /// Whether lines that are not understood are counted, instead of refused.
    pub tolerant: bool,
    /// What was read, if it is not a file of a format.
    pub source: Option<String>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Converted {
    pub format: &'static str,
    pub origin: Origin,
    pub lines: u64,
    pub records: u64,
    pub bytes: u64,
    pub summary: Summary,
}

/// What a caller knows at the end of what it reads.
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
    let origin = origin(&events, conversion)?;
    let into = BufWriter::with_capacity(1 << 18, into);
    let mut writer = Writer::new(conversion.output, &origin, into).map_err(unwritable)?;
    let mut choice = Choice::new(conversion);
    let mut first_ns = None;
    while let Some(mut event) = events.next()? {
        if choice.takes(&mut event) {
            let began_ns = *first_ns.get_or_insert(event.at_ns.unwrap_or(0));
            event.at_ns = event.at_ns.map(|at_ns| at_ns.saturating_sub(began_ns));
            writer.add(&event)?;
        }
    }
    let facts = events.facts();
    let mut summary = summary(facts, choice.operations);
    ending(&mut summary);
    let (records, bytes) = writer.finish(summary.clone()).map_err(unwritable)?;
    summary.records = records;
    let TraceFacts { format, lines, .. } = *facts;
    Ok(Converted { format, origin, lines, records, bytes, summary })
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

pub(crate) fn summary(facts: &TraceFacts, operations: BTreeMap<String, u64>) -> Summary {
    Summary {
        records: 0,
        operations,
        left_out: facts.left_out.clone(),
        other_lines: facts.other_lines.clone(),
        server: facts.server.clone(),
        reconnects: facts.reconnects,
    }
}

/// Which events are written, and with which keys.
struct Choice {
    anonymiser: Option<Anonymiser>,
    sampler: Sampler,
    operations: BTreeMap<String, u64>,
}

impl Choice {
    fn new(conversion: &Conversion) -> Choice {
        Choice {
            anonymiser: conversion.anonymous.then(Anonymiser::default),
            sampler: Sampler::new(conversion.sampled),
            operations: BTreeMap::new(),
        }
    }

    fn takes(&mut self, event: &mut TraceEvent) -> bool {
        let name = event.action.name();
        let more = u64::from(event.count);
        match self.operations.get_mut(name) {
            Some(count) => *count += more,
            None => drop(self.operations.insert(name.to_owned(), more)),
        }
        let takes = self.sampler.takes(&event.key);
        if let (true, Some(anonymiser)) = (takes, &mut self.anonymiser) {
            event.key_bytes.get_or_insert(event.key.len() as u32);
            event.key = anonymiser.renamed(event.key.as_bytes());
        }
        takes
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

    fn add(&mut self, event: &TraceEvent) -> Result<(), String> {
        match self {
            Writer::Cachemark(writer) => writer.add(&record_of(event)).map_err(unwritable),
            Writer::Csv { into, bytes, records } => {
                let line = csv_line(event)?;
                *bytes += line.len() as u64;
                *records += 1;
                into.write_all(line.as_bytes()).map_err(unwritable)
            }
        }
    }

    /// How many records were written, and how many bytes.
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

pub(crate) fn record_of(event: &TraceEvent) -> Record<'_> {
    Record {
        at_ns: event.at_ns,
        operation: event.action.name(),
        key: event.key.as_bytes(),
        key_bytes: event.key_bytes,
        length: event.length,
        ttl_s: event.exptime_s,
        count: event.count,
        client: event.client,
        succeeded: event.succeeded,
        joined: event.joined,
    }
}

fn csv_line(event: &TraceEvent) -> Result<String, String> {
    if event.key.contains(',') {
        return Err(format!("key {:?} has a comma, for which CSV traces have no place", event.key));
    }
    if let Action::Skip(name) = &event.action
        && name.contains(',')
    {
        return Err(format!("operation {name:?} has a comma, for which CSV traces have no place"));
    }
    let text = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
    let second = 1_000_000_000;
    let at = |ns: u64| format!("{}.{:09}", ns / second, ns % second);
    Ok(format!(
        "{},{},{},{},{},{},{}\n",
        event.at_ns.map(at).unwrap_or_default(),
        event.action.name(),
        event.key,
        text(event.length),
        event.exptime_s,
        text(event.key_bytes),
        event.count
    ))
}
