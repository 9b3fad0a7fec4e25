//! Collects the events of a trace into one recording.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead;
use std::path::Path;

use cachemark_tape::{Op, Recording, Verb};

use crate::event::{Action, MAX_KEY_BYTES, TraceEvent};
use crate::events::Events;
use crate::lines;
use crate::options::{Gets, ImportOptions};

/// The longest recording: ends of tapes are still numbers of ns.
const MAX_LENGTH_NS: u64 = 1 << 62;

/// A recording, and facts about its import.
#[derive(Clone, Debug, Default)]
pub struct ImportedTrace {
    pub recording: Recording,
    pub format: &'static str,
    pub lines: u64,
    /// Operations that are not in the recording, by the reason.
    pub left_out: BTreeMap<String, u64>,
    /// Lines without a client's operation, by type.
    pub other_lines: BTreeMap<String, u64>,
    /// The columns of the header that were not used.
    pub unused_columns: Vec<String>,
    /// Gets that do not fill the cache, as no line says how large their value is.
    pub unfilled: u64,
}

impl ImportedTrace {
    /// The share of the operations that is not in the recording.
    pub fn left_out_share(&self) -> f64 {
        let left_out: u64 = self.left_out.values().sum();
        let all = left_out + self.recording.ops.len() as u64;
        if all == 0 { 0.0 } else { left_out as f64 / all as f64 }
    }

    /// The omissions, by reason, the most first: `90 append, 3 prepend`.
    pub fn reasons(&self) -> String {
        let mut reasons: Vec<_> = self.left_out.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let texts: Vec<String> = reasons
            .iter()
            .take(MOST_REASONS)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let more = reasons.len().saturating_sub(MOST_REASONS);
        let more = if more == 0 { String::new() } else { format!(", and {more} other reasons") };
        texts.join(", ") + &more
    }
}

const MOST_REASONS: usize = 5;

/// Import a file. An error names the file and the line.
pub fn import_file(path: &Path, options: &ImportOptions) -> Result<ImportedTrace, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let mut from =
        lines::open(path).map_err(|error| place(format!("it cannot be read: {error}")))?;
    import(&mut *from, options).map_err(place)
}

/// Import from a reader.
pub fn import(from: &mut dyn BufRead, options: &ImportOptions) -> Result<ImportedTrace, String> {
    let mut events = Events::open(from, options)?;
    let mut trace = EventCollector::default();
    let mut count = 0;
    while count < options.max_ops {
        let Some(event) = events.next()? else { break };
        count += u64::from(event.count);
        trace.events.push(event);
    }
    let facts = events.facts();
    trace.left_out.clone_from(&facts.left_out);
    Ok(ImportedTrace {
        lines: facts.lines,
        format: facts.format,
        other_lines: facts.other_lines.clone(),
        unused_columns: facts.unused_columns.clone(),
        ..trace.recording(options)?
    })
}

/// The events so far.
#[derive(Default)]
struct EventCollector {
    events: Vec<TraceEvent>,
    left_out: BTreeMap<String, u64>,
}

impl EventCollector {
    /// Keys are numbered in the order of their first use. Keys that are only counted become counters.
    fn recording(mut self, options: &ImportOptions) -> Result<ImportedTrace, String> {
        let counters = counters(&self.events);
        let is_counter = |event: &TraceEvent| counters.contains(&event.key);
        let timed = self.events.iter().all(|event| event.at_ns.is_some());
        let first_ns = self.events.iter().filter_map(|event| event.at_ns).min().unwrap_or(0);
        let last_ns = self.events.iter().filter_map(|event| event.at_ns).max().unwrap_or(0);
        if last_ns - first_ns >= MAX_LENGTH_NS {
            return Err("line 1: its time and that of the last line are centuries apart".to_owned());
        }
        let mut keys = KeyTable::default();
        // Counters are the last keys of a tape.
        self.events.iter().filter(|event| !is_counter(event)).for_each(|event| keys.add(event));
        let plain = keys.names.len();
        self.events.iter().filter(|event| is_counter(event)).for_each(|event| keys.add(event));
        let mut recording =
            Recording { counters: (keys.names.len() - plain) as u32, ..Recording::default() };
        let mut unfilled = 0;
        for event in &self.events {
            let verb = match playable_verb(event, is_counter(event)) {
                Ok(verb) => verb,
                Err(reason) => {
                    *self.left_out.entry(reason).or_default() += u64::from(event.count);
                    continue;
                }
            };
            let key = keys.numbers[&event.key];
            let fills = options.gets == Gets::CacheAside && matches!(verb, Verb::Get | Verb::Gets);
            let verb = match fills {
                true if keys.known[key as usize] => Verb::Fetch,
                true => {
                    unfilled += u64::from(event.count);
                    verb
                }
                false => verb,
            };
            let length = match verb {
                verb if verb.counts() => 1,
                verb if verb.writes() => event.length.unwrap_or(keys.lengths[key as usize]),
                _ => 0,
            };
            let op = Op {
                verb,
                noreply: false,
                run: 1,
                key,
                length,
                exptime_s: event.exptime_s,
                generation: 0,
            };
            for _ in 0..event.count {
                if recording.ops.len() as u64 == options.max_ops {
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
        let left_out = self.left_out;
        Ok(ImportedTrace { recording, left_out, unfilled, ..ImportedTrace::default() })
    }
}

/// The verb of a tape for an event, or why it has none.
fn playable_verb(event: &TraceEvent, is_counter: bool) -> Result<Verb, String> {
    match &event.action {
        Action::Do(verb) if verb.counts() && !is_counter => {
            Err(format!("{} of a key with other operations", verb.name()))
        }
        Action::Do(verb) => Ok(*verb),
        Action::Skip(name) => Err(format!("{name}, which tapes do not support")),
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
