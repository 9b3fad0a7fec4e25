//! `trace play`: plays a trace against a server with the rule for fills, and counts hits and misses.
//!
//! Predictions are checked with it. It is no load generator: it times nothing.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cachemark_command::process::print_compact_json;
use cachemark_command::units;
use cachemark_miss_ratio::{Fill, Fills, Operation, Request, Step, Task};
use cachemark_trace::each_record;
use cachemark_trace::file::Record;
use serde::Serialize;

use super::reading::Reading;

const MOST_BATCHED: usize = 32;
/// memcached takes longer ones for a date.
const LONGEST_TTL_S: u32 = 30 * 24 * 3600;
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace; also .zst and .gz
    trace: PathBuf,
    /// The server: HOST:PORT
    server: String,
    #[command(flatten)]
    reading: Reading,
    /// Play this number of times as fast, with expiry times as much shorter
    #[arg(long, value_parser = units::rate, default_value = "1")]
    speed: f64,
    /// Requests that are played and not counted, at the beginning
    #[arg(long, default_value = "0")]
    uncounted: u64,
}

/// The results of the reads.
#[derive(Default, Serialize)]
struct Played {
    requests: u64,
    reads: u64,
    misses: u64,
    bytes: u64,
    missed_bytes: u64,
    /// Writes that the server refused: too large, or no memory for their class.
    refused: u64,
    /// How long the last request was behind its time.
    late_s: f64,
}

pub fn play(arguments: &Arguments) -> Result<(), String> {
    let place = |error: io::Error| format!("{}: {error}", arguments.server);
    let mut player = Player::connect(arguments).map_err(place)?;
    let mut failed = None;
    each_record(&arguments.trace, &arguments.reading.options(), |record| {
        if failed.is_none() {
            failed = player.record(record).err();
        }
    })?;
    let played = match failed {
        Some(error) => Err(error),
        None => player.end(),
    };
    print_compact_json(&played.map_err(place)?);
    Ok(())
}

/// A step that waits for its turn, with its key.
struct Waiting {
    key: Vec<u8>,
    step: Step,
    counts: bool,
}

struct Player {
    into: TcpStream,
    from: BufReader<TcpStream>,
    fills: Fills,
    speed: f64,
    uncounted: u64,
    began: Instant,
    batch: Vec<Waiting>,
    batched: HashSet<u64>,
    value: Vec<u8>,
    played: Played,
}

impl Player {
    fn connect(arguments: &Arguments) -> io::Result<Player> {
        let stream = TcpStream::connect(&arguments.server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Player {
            into: stream.try_clone()?,
            from: BufReader::new(stream),
            fills: Fills::default(),
            speed: arguments.speed,
            uncounted: arguments.uncounted,
            began: Instant::now(),
            batch: Vec::new(),
            batched: HashSet::new(),
            value: Vec::new(),
            played: Played::default(),
        })
    }

    fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        let Some(request) = Request::of(record, self.speed) else { return Ok(()) };
        let due = Duration::from_secs_f64(record.at_ns.unwrap_or(0) as f64 / 1e9 / self.speed);
        let now = self.began.elapsed();
        if due > now {
            self.play_batch()?;
            sleep(due.saturating_sub(self.began.elapsed()));
        }
        self.played.late_s = now.saturating_sub(due).as_secs_f64();
        (0..record.count).try_for_each(|_| self.request(record, &request))
    }

    fn request(&mut self, record: &Record<'_>, request: &Request) -> io::Result<()> {
        self.played.requests += 1;
        let counts = self.played.requests > self.uncounted && request.operation == Operation::Get;
        let Some(step) = self.fills.step(request) else { return Ok(()) };
        // Requests of one key keep their order.
        if self.batch.len() == MOST_BATCHED || !self.batched.insert(step.hash) {
            self.play_batch()?;
            self.batched.insert(step.hash);
        }
        let mut key = record.key.to_vec();
        key.resize(key.len().max(usize::from(step.key_bytes)), b'-');
        self.batch.push(Waiting { key, step, counts });
        Ok(())
    }

    fn end(mut self) -> io::Result<Played> {
        self.play_batch()?;
        Ok(self.played)
    }

    /// Send what waits, read the replies, and send the fills of the gets that missed.
    fn play_batch(&mut self) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.batched.clear();
        let mut bytes = Vec::new();
        batch.iter().for_each(|waiting| self.put_command(&mut bytes, waiting));
        self.into.write_all(&bytes)?;
        bytes.clear();
        let mut fills = 0;
        for waiting in &batch {
            let hit = self.reply(matches!(waiting.step.task, Task::Get(_) | Task::Use))?;
            let Task::Get(fill) = waiting.step.task else { continue };
            if waiting.counts {
                let value_bytes = u64::from(waiting.step.value_bytes.unwrap_or(0));
                self.played.reads += 1;
                self.played.bytes += value_bytes;
                self.played.misses += u64::from(!hit);
                self.played.missed_bytes += value_bytes * u64::from(!hit);
            }
            if let Some(fill) = fill.filter(|_| !hit) {
                fills += 1;
                self.put_store(&mut bytes, "set", &waiting.key, fill);
            }
        }
        self.into.write_all(&bytes)?;
        (0..fills).try_for_each(|_| self.reply(false).map(drop))
    }

    fn put_command(&mut self, into: &mut Vec<u8>, waiting: &Waiting) {
        let key = &waiting.key;
        match waiting.step.task {
            Task::Get(_) | Task::Use => put(into, &[b"get ", key, b"\r\n"]),
            Task::Set(fill) => self.put_store(into, "set", key, fill),
            Task::Add(fill) => self.put_store(into, "add", key, fill),
            Task::Replace(fill) => self.put_store(into, "replace", key, fill),
            Task::Delete => put(into, &[b"delete ", key, b"\r\n"]),
            Task::Touch(ttl_s) => {
                let ttl = format!(" {}\r\n", ttl_s.min(LONGEST_TTL_S));
                put(into, &[b"touch ", key, ttl.as_bytes()]);
            }
        }
    }

    fn put_store(&mut self, into: &mut Vec<u8>, verb: &str, key: &[u8], fill: Fill) {
        let length = fill.value_bytes as usize;
        if self.value.len() < length {
            self.value.resize(length, b'v');
        }
        let head = format!(" 0 {} {length}\r\n", fill.ttl_s.min(LONGEST_TTL_S));
        let value = &self.value[..length];
        put(into, &[verb.as_bytes(), b" ", key, head.as_bytes(), value, b"\r\n"]);
    }

    /// Read a reply; whether a value came.
    fn reply(&mut self, of_get: bool) -> io::Result<bool> {
        let mut hit = false;
        loop {
            let line = self.line()?;
            if let Some(head) = line.strip_prefix("VALUE ") {
                let length = head.rsplit(' ').next().and_then(|length| length.parse().ok());
                let length: u64 = length.ok_or_else(|| strange(&line))?;
                io::copy(&mut (&mut self.from).take(length + 2), &mut io::sink())?;
                hit = true;
                continue;
            }
            match line.as_str() {
                "END" if of_get => return Ok(hit),
                "STORED" | "NOT_STORED" | "DELETED" | "NOT_FOUND" | "TOUCHED" if !of_get => {
                    return Ok(false);
                }
                refused if refused.starts_with("SERVER_ERROR") => {
                    self.played.refused += 1;
                    return Ok(false);
                }
                _ => return Err(strange(&line)),
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.from.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection",
            ));
        }
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    }
}

fn put(into: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| into.extend_from_slice(part));
}

fn strange(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server answered {line:?}"))
}
