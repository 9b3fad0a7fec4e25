//! The output of memcached's `watch fetchers mutations`: `ts=1795269935.627969 gid=3 type=item_store
//! key=foo status=stored cmd=set ttl=60 clsid=1 cfd=25 size=3`.
//!
//! Increments, touches and reads all appear as reads, and deletes do not appear. A store looks up its
//! key first, which appears as a read just before it on the same connection.

use std::collections::HashMap;

use crate::event::{Action, TraceEvent, action, exptime, length, seconds};
use cachemark_tape::Verb;

/// A read and a store of the same key on the same connection within this time are one store. Its own
/// look-up came 1 to 15 µs before it in memcached 1.6; no client replies that fast.
const LOOKUP_NS: u64 = 20_000;

/// The state after the lines so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchLog {
    /// The last event of each connection and its index, if it was a read.
    reads: HashMap<String, (usize, TraceEvent)>,
    events: usize,
}

/// The meaning of a line.
pub(crate) enum LogLine {
    TraceEvent(TraceEvent),
    /// Replace the event with this index: that read belonged to the store.
    Replace(usize, TraceEvent),
    /// The server dropped this many lines.
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
            |name: &str| fields.get(name).copied().ok_or_else(|| format!("{name}= is missing"));
        let kind = field("type")?;
        let connection = fields.get("cfd").copied().unwrap_or("").to_owned();
        let mut event = TraceEvent {
            at_ns: Some(seconds(field("ts")?)?),
            key: decode_key(field("key")?)?,
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

/// Decode a key: memcached writes special bytes as `%` and two hex digits.
fn decode_key(text: &str) -> Result<String, String> {
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
    String::from_utf8(bytes).map_err(|_| format!("key {text:?} is not UTF-8"))
}
