//! The output of memcached's `watch fetchers mutations deletions`: `ts=1795269935.627969 gid=3 type=item_store
//! key=foo status=stored cmd=set ttl=60 clsid=1 cfd=25 size=3`. `deletions` can be watched since memcached 1.6.20.
//!
//! Increments, touches and reads all appear as reads. A store and a delete look up their key first, which appears as
//! a read just before. Each worker thread writes its lines at once, so that lines of several are not in order: `ts`,
//! and within a microsecond `gid`, restore it.

use std::collections::HashMap;

use crate::event::{
    Action, TraceEvent, action, exptime, length, number, seconds_and_microseconds, text_key,
};
use cachemark_tape::Verb;

/// A read and a delete of the same key within this time are one operation. Its own look-up came 1 to 15 µs before it in
/// memcached 1.6; no client replies that fast. Further reads within this time are of the same request.
const LOOKUP_NS: u64 = 20_000;

/// The same for a store, which always looks its key up, in the line of its connection before: as long as a worker thread
/// may have to wait for a CPU or memory in between. Later, the line of the look-up was dropped.
const LONGEST_LOOKUP_NS: u64 = 50_000_000;

/// The state after the lines so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchLog {
    /// The last event of each connection and its index, if it was a read.
    reads: HashMap<String, (usize, TraceEvent)>,
    events: usize,
}

/// The place of an event: its time, memcached's number of its line, and the number of earlier events.
pub(crate) type Place = (Option<u64>, u64, usize);

/// The meaning of a line.
pub(crate) enum LogLine {
    TraceEvent(TraceEvent),
    /// Replace the event at this place: that read belonged to the store or delete.
    Replace(Place, TraceEvent),
    /// The server dropped this many lines.
    Lost(u64),
    /// No request of a client, such as an eviction.
    Other(String),
}

impl WatchLog {
    pub(crate) fn line(&mut self, line: &str) -> Result<LogLine, String> {
        if let Some(lost) = line.strip_prefix("skipped=") {
            // The next lines may belong to lines that are not there.
            self.reads.clear();
            return lost
                .trim()
                .parse()
                .map(LogLine::Lost)
                .map_err(|_| format!("{line:?}: how many?"));
        }
        let fields: HashMap<&str, &str> =
            line.split_whitespace().filter_map(|field| field.split_once('=')).collect();
        let field =
            |name: &str| fields.get(name).copied().ok_or_else(|| format!("{name}= is missing"));
        let kind = field("type")?;
        if !matches!(kind, "item_get" | "item_store" | "deleted") {
            return Ok(LogLine::Other(kind.to_owned()));
        }
        let connection = fields.get("cfd").copied().unwrap_or("").to_owned();
        let (key, key_bytes) = key_of(field("key")?)?;
        let mut event = TraceEvent {
            at_ns: Some(seconds_and_microseconds(field("ts")?)?),
            number: fields.get("gid").map_or(Ok(0), |text| number(text, "gid", u64::MAX))?,
            key,
            key_bytes,
            action: Action::Do(Verb::Get),
            length: None,
            exptime_s: 0,
            count: 1,
            client: fields.get("cfd").and_then(|text| text.parse().ok()),
            succeeded: fields.get("status").map(|status| matches!(*status, "found" | "stored")),
            joined: false,
        };
        let looked_up = match kind {
            "item_store" => {
                event.action = action(field("cmd")?)?;
                event.exptime_s = exptime(field("ttl")?)?;
                event.length = Some(length(field("size")?)?);
                self.reads.remove(&connection)
            }
            "deleted" => {
                event.action = Action::Do(Verb::Delete);
                event.succeeded = Some(true);
                let read = self.last_read_of(&event.key);
                event.client = read.as_ref().and_then(|(_, read)| read.client);
                read
            }
            _ => {
                let bytes = fields.get("size").map_or(Ok(0), |text| length(text))?;
                event.length = (bytes > 0 || event.succeeded == Some(true)).then_some(bytes);
                event.joined = self
                    .reads
                    .get(&connection)
                    .is_some_and(|(_, before)| is_within(before, &event, LOOKUP_NS));
                self.reads.insert(connection, (self.events, event.clone()));
                None
            }
        };
        let most_ns = if kind == "item_store" { LONGEST_LOOKUP_NS } else { LOOKUP_NS };
        if let Some((place, read)) = looked_up
            && read.key == event.key
            && is_within(&read, &event, most_ns)
        {
            return Ok(LogLine::Replace((read.at_ns, read.number, place), event));
        }
        self.events += 1;
        Ok(LogLine::TraceEvent(event))
    }

    /// A line about a delete does not name its connection.
    fn last_read_of(&mut self, key: &str) -> Option<(usize, TraceEvent)> {
        let reads = self.reads.iter().filter(|(_, (_, read))| read.key == key);
        let last = reads.max_by_key(|(_, (_, read))| (read.at_ns, read.number))?.0.clone();
        self.reads.remove(&last)
    }
}

/// The time of a line, which is its first field; `None` of one without a time.
pub fn watch_time_ns(line: &str) -> Option<u64> {
    seconds_and_microseconds(line.strip_prefix("ts=")?.split(' ').next()?).ok()
}

fn is_within(before: &TraceEvent, event: &TraceEvent, most_ns: u64) -> bool {
    event.at_ns >= before.at_ns && event.at_ns <= before.at_ns.map(|at| at + most_ns)
}

/// A key, and its length if it has another name here.
fn key_of(text: &str) -> Result<(String, Option<u32>), String> {
    let bytes = decoded(text)?;
    let key = text_key(&bytes);
    let key_bytes = (key.as_bytes() != bytes).then_some(bytes.len() as u32);
    Ok((key.into_owned(), key_bytes))
}

/// The bytes of a key: memcached writes special ones as `%` and two hex digits.
pub(crate) fn decoded(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("key {text:?}: a % without two hex digits"))?);
        rest = &after[2..];
    }
    Ok(bytes)
}
