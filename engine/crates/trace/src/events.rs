//! The events of a trace in any format, in the order of their times, one after the other.

use std::collections::{BTreeMap, VecDeque};
use std::io::BufRead;

use crate::event::{TraceEvent, check_key, foreign_action};
use crate::file::{Keys, Origin, Record, TraceReader, layout};
use crate::format::Format;
use crate::lines::Lines;
use crate::options::ImportOptions;
use crate::oracle_general::OracleGeneral;
use crate::reader::LineReader;
use crate::watch_log::{LogLine, Place};

/// Lines from different threads may be out of order by less than this.
const MAX_BACKWARD_NS: u64 = 1_000_000_000;
const CLOCK_WENT_BACK: &str = "times that the clock went back";
/// Lines that memcached dropped, among the reasons of what was left out.
const LOST: &str = "dropped by memcached's own log";

/// The facts of a trace besides its events. Counts are complete after the last event.
#[derive(Clone, Debug, Default)]
pub(crate) struct TraceFacts {
    pub format: &'static str,
    pub origin: Option<Origin>,
    /// Lines, or records of cachemark's own format.
    pub lines: u64,
    pub left_out: BTreeMap<String, u64>,
    pub other_lines: BTreeMap<String, u64>,
    pub server: BTreeMap<String, u64>,
    pub reconnects: u64,
    pub unused_columns: Vec<String>,
}

pub(crate) enum Events<'a> {
    Lines(Box<LineEvents<'a>>),
    File(Box<FileEvents<'a>>),
    Requests(Box<RequestEvents<'a>>),
}

impl<'a> Events<'a> {
    /// Begin to read. The first bytes show the format. An error names the line or block.
    pub(crate) fn open(
        from: &'a mut dyn BufRead,
        options: &ImportOptions,
    ) -> Result<Events<'a>, String> {
        let unreadable = |error| format!("line 1: it cannot be read: {error}");
        if from.fill_buf().map_err(unreadable)?.starts_with(&layout::MAGIC[..7]) {
            return match (&options.format, &options.columns) {
                (None, None) => FileEvents::new(from).map(Box::new).map(Events::File),
                _ => Err("block 0: it is in cachemark's own format: leave out --trace-format and --columns".to_owned()),
            };
        }
        if options.format == Some(Format::OracleGeneral) {
            return Ok(Events::Requests(Box::new(RequestEvents::new(from))));
        }
        LineEvents::new(from, options).map(Box::new).map(Events::Lines)
    }

    /// Count errors, instead of ending at the first.
    pub(crate) fn tolerant(mut self) -> Events<'a> {
        if let Events::Lines(lines) = &mut self {
            lines.tolerant = true;
        }
        self
    }

    pub(crate) fn next(&mut self) -> Result<Option<TraceEvent>, String> {
        match self {
            Events::Lines(lines) => lines.next(),
            Events::File(file) => file.next(),
            Events::Requests(requests) => requests.next(),
        }
    }

    /// Call `each` with the records of all events. What has records is not turned into events.
    pub(crate) fn each_record(&mut self, mut each: impl FnMut(&Record<'_>)) -> Result<(), String> {
        match self {
            Events::File(file) => return file.each_record(each),
            Events::Requests(requests) => return requests.each_record(each),
            Events::Lines(_) => {}
        }
        while let Some(event) = self.next()? {
            each(&record_of(&event));
        }
        Ok(())
    }

    pub(crate) fn facts(&self) -> &TraceFacts {
        match self {
            Events::Lines(lines) => &lines.facts,
            Events::File(file) => &file.facts,
            Events::Requests(requests) => &requests.facts,
        }
    }

    /// Whether the file shows keys.
    pub(crate) fn keys(&self) -> Keys {
        self.facts().origin.as_ref().map_or(Keys::Plain, |origin| origin.keys)
    }
}

pub(crate) struct LineEvents<'a> {
    lines: Lines<'a>,
    reader: LineReader,
    facts: TraceFacts,
    /// Events that a later line may precede or replace.
    pending: BTreeMap<Place, TraceEvent>,
    ready: VecDeque<TraceEvent>,
    first: bool,
    sorts: bool,
    tolerant: bool,
    events: usize,
    last_ns: u64,
    /// How far the clock went back.
    back_ns: u64,
}

impl<'a> LineEvents<'a> {
    fn new(from: &'a mut dyn BufRead, options: &ImportOptions) -> Result<LineEvents<'a>, String> {
        let mut lines = Lines::new(from);
        let first_lines = lines.first()?;
        let Some(header) = first_lines.first().map(|line| (*line).to_owned()) else {
            return Err("it is empty".to_owned());
        };
        let reader = LineReader::new(options, &first_lines)
            .map_err(|error| at(lines.first_number(), &error))?;
        let facts = TraceFacts {
            format: reader.format_name(),
            unused_columns: reader.unused_columns(&header),
            ..TraceFacts::default()
        };
        let sorts = reader.is_unordered();
        Ok(LineEvents {
            lines,
            reader,
            facts,
            pending: BTreeMap::new(),
            ready: VecDeque::new(),
            first: true,
            sorts,
            tolerant: false,
            events: 0,
            last_ns: 0,
            back_ns: 0,
        })
    }

    fn next(&mut self) -> Result<Option<TraceEvent>, String> {
        while self.ready.is_empty() {
            let Some(line) = self.lines.next()? else {
                return Ok(self.pending.pop_first().map(|(_, event)| event));
            };
            self.facts.lines = line.number;
            let first = std::mem::replace(&mut self.first, false);
            if !self.reader.is_header(first, &line.text) {
                match self.line(&line.text) {
                    Err(_) if self.tolerant => {
                        count(&mut self.facts.left_out, "that were not understood", 1);
                    }
                    other => other.map_err(|error| at(line.number, &error))?,
                }
            }
        }
        Ok(self.ready.pop_front())
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        match self.reader.event(line)? {
            LogLine::TraceEvent(event) => {
                self.events += 1;
                self.add(event, self.events - 1)?;
            }
            LogLine::Lost(lost) => count(&mut self.facts.left_out, LOST, lost),
            LogLine::Other(name) => count(&mut self.facts.other_lines, &name, 1),
            LogLine::Replace(place, event) => {
                check_key(&event.key)?;
                self.pending.remove(&place);
                self.add(event, place.2)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, mut event: TraceEvent, number: usize) -> Result<(), String> {
        check_key(&event.key)?;
        if let Some(read_ns) = event.at_ns {
            let mut at_ns = read_ns + self.back_ns;
            if at_ns + MAX_BACKWARD_NS <= self.last_ns {
                if !self.tolerant {
                    return Err("its time is before that of the line above".to_owned());
                }
                self.back_ns = self.last_ns - read_ns;
                at_ns = self.last_ns;
                count(&mut self.facts.other_lines, CLOCK_WENT_BACK, 1);
            }
            self.last_ns = self.last_ns.max(at_ns);
            event.at_ns = Some(if self.sorts { at_ns } else { self.last_ns });
        }
        if !self.sorts {
            self.ready.push_back(event);
            return Ok(());
        }
        self.pending.insert((event.at_ns, event.number, number), event);
        let is_final =
            |place: &Place| place.0.is_none_or(|at_ns| at_ns + MAX_BACKWARD_NS <= self.last_ns);
        while self.pending.first_key_value().is_some_and(|(place, _)| is_final(place)) {
            self.ready.extend(self.pending.pop_first().map(|(_, event)| event));
        }
        Ok(())
    }
}

fn at(number: u64, error: &str) -> String {
    format!("line {number}: {error}")
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str, more: u64) {
    let count = counts.entry(name.to_owned()).or_default();
    *count = count.saturating_add(more);
}

pub(crate) struct FileEvents<'a> {
    reader: TraceReader<&'a mut dyn BufRead>,
    facts: TraceFacts,
    ready: VecDeque<TraceEvent>,
}

impl<'a> FileEvents<'a> {
    fn new(from: &'a mut dyn BufRead) -> Result<FileEvents<'a>, String> {
        let reader = TraceReader::new(from)?;
        let origin = Some(reader.origin().clone());
        let facts = TraceFacts { format: "cachemark", origin, ..TraceFacts::default() };
        Ok(FileEvents { reader, facts, ready: VecDeque::new() })
    }

    fn next(&mut self) -> Result<Option<TraceEvent>, String> {
        while self.ready.is_empty() {
            let Some(block) = self.reader.next_block()? else {
                self.end();
                return Ok(None);
            };
            for record in block {
                self.ready.push_back(event_of(&record?)?);
            }
            self.facts.lines += self.ready.len() as u64;
        }
        Ok(self.ready.pop_front())
    }

    fn each_record(&mut self, mut each: impl FnMut(&Record<'_>)) -> Result<(), String> {
        while let Some(block) = self.reader.next_block()? {
            for record in block {
                each(&record?);
                self.facts.lines += 1;
            }
        }
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        let summary = self.reader.summary().cloned().unwrap_or_default();
        self.facts.left_out = summary.left_out;
        self.facts.other_lines = summary.other_lines;
        self.facts.server = summary.server;
        self.facts.reconnects = summary.reconnects;
        self.facts.unused_columns = summary.unused_columns;
    }
}

/// A format of requests without a table of keys.
pub(crate) struct RequestEvents<'a> {
    requests: OracleGeneral<'a>,
    facts: TraceFacts,
}

impl<'a> RequestEvents<'a> {
    fn new(from: &'a mut dyn BufRead) -> RequestEvents<'a> {
        let facts = TraceFacts { format: Format::OracleGeneral.name(), ..TraceFacts::default() };
        RequestEvents { requests: OracleGeneral::new(from), facts }
    }

    fn next(&mut self) -> Result<Option<TraceEvent>, String> {
        let event = self.requests.next()?.map(|record| event_of(&record)).transpose()?;
        self.facts.lines = self.requests.records();
        Ok(event)
    }

    fn each_record(&mut self, mut each: impl FnMut(&Record<'_>)) -> Result<(), String> {
        while let Some(record) = self.requests.next()? {
            each(&record);
        }
        self.facts.lines = self.requests.records();
        Ok(())
    }
}

fn event_of(record: &Record<'_>) -> Result<TraceEvent, String> {
    let key = std::str::from_utf8(record.key).map_err(|_| "a key is not UTF-8")?;
    Ok(TraceEvent {
        at_ns: record.at_ns,
        number: 0,
        key: key.to_owned(),
        key_bytes: record.key_bytes,
        action: foreign_action(record.operation)?,
        length: record.length,
        exptime_s: record.ttl_s,
        count: record.count,
        client: record.client,
        succeeded: record.succeeded,
        joined: record.joined,
    })
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
