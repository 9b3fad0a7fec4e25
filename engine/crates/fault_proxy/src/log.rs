//! The log: a JSON object on each line, with the time on CLOCK_MONOTONIC.

use std::fs::File;
use std::io::{BufWriter, Write};

use cachemark_scripted::monotonic_ns;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    Accepted {
        connection: u64,
        upstream: String,
    },
    Closed {
        connection: u64,
        by: ClosedBy,
        request_bytes: u64,
        reply_bytes: u64,
    },
    FaultStarted {
        fault: &'a Value,
    },
    FaultEnded {
        fault: &'a Value,
    },
    /// The fault changed what the client gets, from this byte of the connection's replies on.
    Injected {
        connection: u64,
        reply_offset: u64,
    },
    /// More events happened, which are not in the log.
    End {
        dropped_events: u64,
    },
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClosedBy {
    Client,
    Upstream,
    Fault,
    /// The proxy ended.
    End,
}

#[derive(Serialize)]
struct Line<'a> {
    at_ns: u64,
    #[serde(flatten)]
    event: Event<'a>,
}

/// The file, and how many events it still takes.
pub struct Log {
    file: Option<BufWriter<File>>,
    room: usize,
    dropped_events: u64,
}

impl Log {
    pub fn new(file: Option<File>, events_max: usize) -> Log {
        Log { file: file.map(BufWriter::new), room: events_max, dropped_events: 0 }
    }

    pub fn add(&mut self, event: Event<'_>) {
        match self.room {
            0 => self.dropped_events += 1,
            _ => {
                self.room -= 1;
                self.write(event);
            }
        }
    }

    /// Hand what was added to the file.
    pub fn flush(&mut self) {
        // A full disk must not end the proxy in the middle of an experiment: the last line will be missing.
        self.file.as_mut().map(BufWriter::flush);
    }

    /// Write the last line, even beyond the limit.
    pub fn end(&mut self) {
        let dropped_events = self.dropped_events;
        self.write(Event::End { dropped_events });
        self.flush();
    }

    fn write(&mut self, event: Event<'_>) {
        let Some(file) = &mut self.file else { return };
        let line = Line { at_ns: monotonic_ns(), event };
        let text = serde_json::to_string(&line).expect("plain values");
        let _ = writeln!(file, "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_says_how_much_is_missing() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut log = Log::new(Some(file.reopen().expect("a file")), 1);
        for connection in 0..3 {
            log.add(Event::Injected { connection, reply_offset: 7 });
        }
        log.end();
        let text = std::fs::read_to_string(file.path()).expect("text");
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (&lines[0]["event"], &lines[0]["reply_offset"]),
            (&"injected".into(), &7.into())
        );
        assert_eq!((&lines[1]["event"], &lines[1]["dropped_events"]), (&"end".into(), &2.into()));
        assert!(lines[0]["at_ns"].as_u64() <= lines[1]["at_ns"].as_u64());
    }
}
