//! Collects the events of a trace into one recording.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use cachemark_tape::{Op, Recording, Verb};

use crate::event::{Action, TraceEvent};
use crate::format::Format;
use crate::watch_log::{LogLine, WatchLog};
use crate::{csv, kvcache, lines, twitter};

const MAX_KEY_BYTES: usize = 250;
/// Lines from different threads may be out of order by less than this.
const MAX_BACKWARD_NS: u64 = 1_000_000_000;

/// A recording, and facts about its import.
#[derive(Clone, Debug, Default)]
pub struct ImportedTrace {
    pub recording: Recording,
    pub lines: u64,
    /// Operations that a tape cannot hold, by name.
    pub skipped: BTreeMap<String, u64>,
    /// Lines that memcached dropped.
    pub lost: u64,
}

/// Import up to `max_ops` operations from a file. An error names the line.
pub fn import_file(
    path: &Path,
    format: Option<Format>,
    max_ops: u64,
) -> Result<ImportedTrace, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let mut from =
        lines::open(path).map_err(|error| place(format!("it cannot be read: {error}")))?;
    import(&mut *from, format, max_ops).map_err(place)
}

/// Import from a reader. Without a format, the first line decides.
pub fn import(
    from: &mut dyn BufRead,
    format: Option<Format>,
    max_ops: u64,
) -> Result<ImportedTrace, String> {
    let mut line = String::new();
    let at = |number: u64, error: String| format!("line {number}: {error}");
    if !lines::next(from, &mut line).map_err(|error| at(1, error))? {
        return Err("it is empty".to_owned());
    }
    let mut reader = LineReader::new(format, &line).map_err(|error| at(1, error))?;
    let mut trace = EventCollector::default();
    let mut number = 1;
    loop {
        let blank = line.trim().is_empty();
        if !blank && !reader.is_header(number, &line) {
            trace.line(&mut reader, &line).map_err(|error| at(number, error))?;
        }
        if trace.count >= max_ops {
            break;
        }
        number += 1;
        if !lines::next(from, &mut line).map_err(|error| at(number, error))? {
            number -= 1;
            break;
        }
    }
    let mut imported = trace.recording(max_ops)?;
    imported.lines = number;
    Ok(imported)
}

enum LineReader {
    Twitter,
    Kvcache(kvcache::Columns),
    Csv(csv::Columns),
    Memcached(WatchLog),
}

impl LineReader {
    fn new(format: Option<Format>, first: &str) -> Result<LineReader, String> {
        let Some(format) = format.or_else(|| Format::guess(first)) else {
            return Err(format!(
                "{:?} is not the start of a known format: give the format with --trace-format",
                first.chars().take(60).collect::<String>()
            ));
        };
        let header = |needs: &str| format!("it must be a header with {needs}");
        match format {
            Format::Twitter => Ok(LineReader::Twitter),
            Format::Memcached => Ok(LineReader::Memcached(WatchLog::default())),
            Format::Kvcache => kvcache::Columns::of(first)
                .map(LineReader::Kvcache)
                .ok_or_else(|| header("key, op, size, op_count and key_size")),
            Format::Csv => {
                csv::Columns::of(first).map(LineReader::Csv).ok_or_else(|| header("key and op"))
            }
        }
    }

    /// Whether a line is not an event: a header, or memcached's reply to `watch`.
    fn is_header(&self, number: u64, line: &str) -> bool {
        match self {
            LineReader::Kvcache(_) | LineReader::Csv(_) => number == 1,
            LineReader::Memcached(_) => line == "OK",
            LineReader::Twitter => false,
        }
    }
}

/// The events so far.
#[derive(Default)]
struct EventCollector {
    events: Vec<TraceEvent>,
    count: u64,
    skipped: BTreeMap<String, u64>,
    lost: u64,
    last_ns: u64,
}

impl EventCollector {
    fn line(&mut self, reader: &mut LineReader, line: &str) -> Result<(), String> {
        let event = match reader {
            LineReader::Twitter => twitter::event(line)?,
            LineReader::Kvcache(columns) => columns.event(line)?,
            LineReader::Csv(columns) => columns.event(line)?,
            LineReader::Memcached(log) => match log.line(line)? {
                LogLine::TraceEvent(event) => event,
                LogLine::Lost(lost) => {
                    self.lost = self.lost.saturating_add(lost);
                    return Ok(());
                }
                LogLine::Replace(place, event) => {
                    check_key(&event.key)?;
                    self.events[place] = event;
                    return Ok(());
                }
            },
        };
        self.add(event)
    }

    fn add(&mut self, mut event: TraceEvent) -> Result<(), String> {
        check_key(&event.key)?;
        if let Some(at_ns) = event.at_ns {
            if at_ns + MAX_BACKWARD_NS <= self.last_ns {
                return Err("its time is before that of the line above".to_owned());
            }
            self.last_ns = self.last_ns.max(at_ns);
            event.at_ns = Some(self.last_ns);
        }
        self.count += u64::from(event.count);
        self.events.push(event);
        Ok(())
    }

    /// Keys are numbered in the order of their first use. Keys that are only counted become counters.
    fn recording(mut self, max_ops: u64) -> Result<ImportedTrace, String> {
        let counters = counters(&self.events);
        let is_counter = |event: &TraceEvent| counters.contains(&event.key);
        let timed = self.events.iter().all(|event| event.at_ns.is_some());
        let first_ns = self.events.iter().filter_map(|event| event.at_ns).min().unwrap_or(0);
        let mut keys = KeyTable::default();
        // Counters are the last keys of a tape.
        self.events.iter().filter(|event| !is_counter(event)).for_each(|event| keys.add(event));
        let plain = keys.names.len();
        self.events.iter().filter(|event| is_counter(event)).for_each(|event| keys.add(event));
        let mut recording =
            Recording { counters: (keys.names.len() - plain) as u32, ..Recording::default() };
        for event in &self.events {
            let verb = match &event.action {
                Action::Do(verb) if verb.counts() && !is_counter(event) => {
                    Err(format!("{} of a key with other operations", verb.name()))
                }
                Action::Do(verb) => Ok(*verb),
                Action::Skip(name) => Err(name.clone()),
            };
            let verb = match verb {
                Ok(verb) => verb,
                Err(name) => {
                    *self.skipped.entry(name).or_default() += u64::from(event.count);
                    continue;
                }
            };
            let key = keys.numbers[&event.key];
            let length = match verb {
                verb if verb.counts() => 1,
                verb if verb.writes() => event.length.unwrap_or(keys.lengths[key as usize]),
                _ => 0,
            };
            let op = Op { verb, noreply: false, run: 1, key, length, exptime_s: event.exptime_s };
            for _ in 0..event.count {
                if recording.ops.len() as u64 == max_ops {
                    break;
                }
                recording.ops.push(op);
                if timed {
                    recording.times_ns.push(event.at_ns.unwrap_or(first_ns) - first_ns);
                }
            }
        }
        recording.lengths = keys.lengths;
        recording.keys = padded_names(keys.names, &keys.sizes);
        Ok(ImportedTrace { recording, lines: 0, skipped: self.skipped, lost: self.lost })
    }
}

/// Keys that are incremented or decremented, perhaps deleted, but never read or stored.
fn counters(events: &[TraceEvent]) -> HashSet<String> {
    let counts = |event: &&TraceEvent| matches!(event.action, Action::Do(verb) if verb.counts());
    let mut counters: HashSet<String> =
        events.iter().filter(counts).map(|event| event.key.clone()).collect();
    for event in events {
        if let Action::Do(verb) = event.action
            && !verb.counts()
            && verb != Verb::Delete
        {
            counters.remove(&event.key);
        }
    }
    counters
}

/// Keys in the order of their first use.
#[derive(Default)]
struct KeyTable {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
    /// The original length of each key.
    sizes: Vec<Option<u32>>,
    /// The first known value size of each key.
    lengths: Vec<u32>,
    known: Vec<bool>,
}

impl KeyTable {
    fn add(&mut self, event: &TraceEvent) {
        let number = *self.numbers.entry(event.key.clone()).or_insert_with(|| {
            self.names.push(event.key.clone());
            self.sizes.push(event.key_bytes);
            self.lengths.push(0);
            self.known.push(false);
            self.names.len() as u32 - 1
        }) as usize;
        if let (false, Some(length)) = (self.known[number], event.length) {
            self.lengths[number] = length;
            self.known[number] = true;
        }
    }
}

/// Pad keys to their original length, because anonymised keys are shorter. A key stays as it is if
/// padding would make it equal to another one.
fn padded_names(names: Vec<String>, sizes: &[Option<u32>]) -> Vec<Vec<u8>> {
    let mut taken: HashSet<Vec<u8>> = names.iter().map(|name| name.clone().into_bytes()).collect();
    let pad = |(name, size): (String, &Option<u32>)| {
        let bytes = name.into_bytes();
        let wanted = size.map_or(0, |size| size as usize).min(MAX_KEY_BYTES);
        if bytes.len() >= wanted {
            return bytes;
        }
        let mut longer = bytes.clone();
        longer.resize(wanted, b'_');
        if taken.insert(longer.clone()) { longer } else { bytes }
    };
    names.into_iter().zip(sizes).map(pad).collect()
}

fn check_key(key: &str) -> Result<(), String> {
    let clean = key.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !clean {
        let shown: String = key.chars().take(40).collect();
        return Err(format!(
            "key {shown:?}: keys are 1 to 250 bytes without spaces or control characters"
        ));
    }
    Ok(())
}
