//! What memcached prints to `watch fetchers mutations`:
//! `ts=1795269935.627969 gid=3 type=item_store key=foo status=stored cmd=set ttl=60 clsid=1 cfd=25 size=3`.
//!
//! Increments, touches and reads all look like a read there, and a delete not at all. A store looks
//! its key up first, and that is printed as a read right before it on the same connection.

use std::collections::HashMap;

use crate::event::{Action, TraceEvent, action, exptime, length, seconds};
use cachemark_tape::Verb;

/// A read and a store of one key on one connection this close to each other are one store: its own
/// look-up came 1 to 15 µs before it in memcached 1.6, and no client's reply is as quick.
const LOOKUP_NS: u64 = 20_000;

/// Lines so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchLog {
    /// The last event of each connection, by its place in the trace, if that was a read.
    reads: HashMap<String, (usize, TraceEvent)>,
    events: usize,
}

/// What a line of the log comes to.
pub(crate) enum LogLine {
    TraceEvent(TraceEvent),
    /// In place of the read that is so many events from the start: it was the store's own.
    Replace(usize, TraceEvent),
    /// So many lines the server could not keep.
    Lost(u64),
}

impl WatchLog {
    pub(crate) fn line(&mut self, line: &str) -> Result<LogLine, String> {
        if let Some(lost) = line.strip_prefix("skipped=") {
            return lost
                .trim()
                .parse()
                .map(LogLine::Lost)
                .map_err(|_| format!("{line:?}: how many?"));
        }
        let fields: HashMap<&str, &str> =
            line.split_whitespace().filter_map(|field| field.split_once('=')).collect();
        let field =
            |name: &str| fields.get(name).copied().ok_or_else(|| format!("no {name}= in it"));
        let kind = field("type")?;
        let connection = fields.get("cfd").copied().unwrap_or("").to_owned();
        let mut event = TraceEvent {
            at_ns: Some(seconds(field("ts")?)?),
            key: decoded(field("key")?)?,
            key_bytes: None,
            action: Action::Do(Verb::Get),
            length: None,
            exptime_s: 0,
            count: 1,
        };
        match kind {
            "item_get" => {
                let bytes = fields.get("size").map_or(Ok(0), |text| length(text))?;
                event.length = (bytes > 0).then_some(bytes);
                self.reads.insert(connection, (self.events, event.clone()));
            }
            "item_store" => {
                event.action = action(field("cmd")?)?;
                event.exptime_s = exptime(field("ttl")?)?;
                event.length = Some(length(field("size")?)?);
                if let Some((place, read)) = self.reads.remove(&connection)
                    && read.key == event.key
                    && event.at_ns <= read.at_ns.map(|at| at + LOOKUP_NS)
                {
                    return Ok(LogLine::Replace(place, event));
                }
            }
            other => event.action = Action::Skip(other.to_owned()),
        }
        self.events += 1;
        Ok(LogLine::TraceEvent(event))
    }
}

/// A key as memcached writes it: what is not plain is a `%` and two hex digits.
fn decoded(text: &str) -> Result<String, String> {
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
    String::from_utf8(bytes).map_err(|_| format!("key {text:?} is no UTF-8"))
}
