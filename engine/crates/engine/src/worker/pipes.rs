//! Messages on stdin and stdout, one JSON line each.

use std::io::{self, Write};
use std::time::SystemTime;

use super::messages::{Answer, Request};

/// A line that is no request becomes an error.
pub type Incoming = Result<Request, String>;

/// How long it is until an instant of the wall clock; 0 if it has passed.
pub fn until_unix_ns(instant_ns: u64, now: SystemTime) -> u64 {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    instant_ns.saturating_sub(now.as_nanos() as u64)
}

pub fn failure(kind: &'static str, text: String, definite: bool) -> Answer {
    Answer::Error { kind, text, definite }
}

pub fn send(answer: &Answer) {
    let mut line = serde_json::to_vec(answer).expect("plain values");
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    // If the caller is gone, stdin ends too, and no process reads this.
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
}
