//! The log of a running memcached as whole lines, from one mark to another.
//!
//! A mark is a get of a key that no client stores, sent just after the server's counters were read at the begin, and
//! just before at the end. Its time in the log is where the recording begins or ends, so that lines that were under
//! way belong to the right side, and the counters count the same requests.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cachemark_trace::file::Summary;
use cachemark_trace::watch_time_ns;

use super::control::{Control, Counters, open};

/// `deletions` can be watched since memcached 1.6.20. One that does not know a word refuses them all.
const WATCHED: [&str; 3] = [
    "fetchers mutations deletions evictions",
    "fetchers mutations evictions",
    "fetchers mutations",
];
/// Our own requests between the two readings of the counters.
const MARKS: u64 = 2;
const MOST_LINE_BYTES: usize = 1 << 14;
const POLL: Duration = Duration::from_millis(50);
/// memcached's logger sleeps for up to a second if there is nothing to log.
const MARK_WAIT: Duration = Duration::from_secs(4);
/// Workers write their lines in turn: some that are older than the mark come after it.
const LATE_LINES_WAIT: Duration = Duration::from_millis(300);
const RECONNECT_EVERY: Duration = Duration::from_millis(200);

/// When a recording ends.
pub struct Limits {
    pub duration: Option<Duration>,
    pub requests: Option<u64>,
    /// Bytes of the log.
    pub bytes: Option<u64>,
    /// Set by a signal.
    pub ends: Arc<AtomicBool>,
}

/// Findings besides the lines.
#[derive(Default)]
pub struct Findings {
    before: Option<Counters>,
    after: Option<Counters>,
    reconnects: u64,
}

impl Findings {
    pub fn add_to(&self, summary: &mut Summary) {
        summary.reconnects = self.reconnects;
        if let (Some(before), Some(after)) = (&self.before, &self.after) {
            summary.server = after.since(before);
        }
        for counter in ["cmd_get", "get_misses"] {
            if let Some(count) = summary.server.get_mut(counter) {
                *count = count.saturating_sub(MARKS);
            }
        }
        let dropped = summary.server.get("log_worker_dropped").copied().unwrap_or(0);
        if dropped > 0 {
            summary.left_out.insert("dropped by memcached's workers".to_owned(), dropped);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until the first mark, or until then.
    Beginning(Instant),
    Recording,
    /// Until the last mark, or until then.
    Ending(Instant),
    /// Until late lines are there.
    Late(Instant),
    Ended,
}

pub struct Watcher {
    control: Control,
    limits: Limits,
    began: Instant,
    log: TcpStream,
    words: &'static str,
    mark: String,
    phase: Phase,
    /// The times of the marks.
    from_ns: u64,
    to_ns: u64,
    /// Lines from which a mark may still cut.
    held: Vec<String>,
    partial: Vec<u8>,
    ready: Vec<u8>,
    given: usize,
    requests: u64,
    /// The key of the line before, if that was a read.
    read_before: String,
    bytes: u64,
    found: Rc<RefCell<Findings>>,
}

impl Watcher {
    pub fn start(mut control: Control, limits: Limits) -> Result<Watcher, String> {
        let (log, words) = watch(control.server(), &WATCHED)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mark = format!("cachemark-record-{:x}-{}", now.as_nanos(), std::process::id());
        let before = control.counters()?;
        control.mark(&format!("{mark}-begin"))?;
        let mut watcher = Watcher {
            control,
            limits,
            began: Instant::now(),
            log,
            words,
            mark,
            phase: Phase::Beginning(Instant::now() + MARK_WAIT),
            from_ns: 0,
            to_ns: u64::MAX,
            held: Vec::new(),
            partial: Vec::new(),
            ready: b"OK\n".to_vec(),
            given: 0,
            requests: 0,
            read_before: String::new(),
            bytes: 0,
            found: Rc::new(RefCell::new(Findings { before: Some(before), ..Findings::default() })),
        };
        watcher.await_mark()?;
        Ok(watcher)
    }

    /// Wait for the first mark. A busy server may have dropped its line, but no other server has no lines at all.
    fn await_mark(&mut self) -> Result<(), String> {
        while let Phase::Beginning(until) = self.phase {
            if Instant::now() < until {
                self.read_log();
            } else if !self.held.iter().any(|line| watch_time_ns(line).is_some()) {
                return Err(
                    "it accepts `watch`, but sends no log: only memcached itself can be recorded"
                        .to_owned(),
                );
            } else {
                self.begin(0);
            }
        }
        match self.phase {
            Phase::Ended => Err("it closed the connection of its log".to_owned()),
            _ => Ok(()),
        }
    }

    pub fn findings(&self) -> Rc<RefCell<Findings>> {
        Rc::clone(&self.found)
    }

    fn is_over(&self) -> bool {
        let reached = |limit: Option<u64>, is: u64| limit.is_some_and(|limit| is >= limit);
        self.limits.ends.load(Ordering::Relaxed)
            || self.limits.duration.is_some_and(|most| self.began.elapsed() >= most)
            || reached(self.limits.requests, self.requests)
            || reached(self.limits.bytes, self.bytes)
    }

    /// Go on to the next phase if it is time.
    fn step(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Recording if self.is_over() => self.end(),
            Phase::Ending(until) if now >= until => self.cut_off(u64::MAX),
            Phase::Late(until) if now >= until => self.phase = Phase::Ended,
            _ => {}
        }
    }

    fn begin(&mut self, from_ns: u64) {
        self.from_ns = from_ns;
        self.phase = Phase::Recording;
        self.release();
    }

    fn end(&mut self) {
        let marked = self.control.mark(&format!("{}-end", self.mark));
        let after = marked.and_then(|()| self.control.counters());
        // A server that is gone has no counters, and no line of a mark.
        self.phase = match &after {
            Ok(_) => Phase::Ending(Instant::now() + MARK_WAIT),
            Err(_) => Phase::Late(Instant::now() + LATE_LINES_WAIT),
        };
        self.found.borrow_mut().after = after.ok();
    }

    fn cut_off(&mut self, to_ns: u64) {
        self.to_ns = to_ns;
        self.phase = Phase::Late(Instant::now() + LATE_LINES_WAIT);
        self.release();
    }

    fn release(&mut self) {
        for line in std::mem::take(&mut self.held) {
            self.give(&line);
        }
    }

    fn give(&mut self, line: &str) {
        if watch_time_ns(line).is_some_and(|at| at < self.from_ns || at > self.to_ns) {
            return;
        }
        self.count(line);
        self.ready.extend_from_slice(line.as_bytes());
        self.ready.push(b'\n');
    }

    /// Count a request. A store and a delete look up their key first, in the line before: that is no request.
    fn count(&mut self, line: &str) {
        let key = line.split(' ').find_map(|field| field.strip_prefix("key=")).unwrap_or_default();
        let is_read = line.contains("type=item_get");
        let is_looked_up = !is_read && !key.is_empty() && key == self.read_before;
        self.requests += u64::from(!is_looked_up && !line.contains("type=eviction"));
        self.read_before.clear();
        if is_read {
            self.read_before.push_str(key);
        }
    }

    fn line(&mut self, line: String) {
        if line.contains(&self.mark) {
            let at_ns = watch_time_ns(&line).unwrap_or(0);
            match self.phase {
                Phase::Beginning(_) => self.begin(at_ns),
                Phase::Ending(_) => self.cut_off(at_ns),
                _ => {}
            }
        } else if matches!(self.phase, Phase::Beginning(_) | Phase::Ending(_)) {
            self.held.push(line);
        } else {
            self.give(&line);
        }
    }

    fn read_log(&mut self) {
        let mut bytes = [0; 1 << 16];
        match self.log.read(&mut bytes) {
            Ok(0) => self.connect_again(),
            Ok(read) => {
                self.bytes += read as u64;
                self.partial.extend_from_slice(&bytes[..read]);
                let whole =
                    self.partial.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let lines: Vec<u8> = self.partial.drain(..whole).collect();
                for line in String::from_utf8_lossy(&lines).lines() {
                    self.line(line.to_owned());
                }
                // No line of memcached is that long: the key is at most 250 bytes.
                if self.partial.len() > MOST_LINE_BYTES {
                    self.partial.clear();
                }
            }
            Err(error) if is_time_out(&error) => {}
            Err(_) => self.connect_again(),
        }
    }

    /// The server went away. What is asked of it meanwhile is not in the log.
    fn connect_again(&mut self) {
        self.partial.clear();
        while self.phase == Phase::Recording && !self.is_over() {
            match watch(self.control.server(), &[self.words]) {
                Ok((log, _)) if self.control.reconnect().is_ok() => {
                    self.log = log;
                    self.found.borrow_mut().reconnects += 1;
                    return;
                }
                _ => thread::sleep(RECONNECT_EVERY),
            }
        }
        self.release();
        self.phase = Phase::Ended;
    }
}

impl Read for Watcher {
    /// Whole lines, as many as have a place.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() && self.phase != Phase::Ended {
            self.ready.clear();
            self.given = 0;
            self.step();
            self.read_log();
        }
        let more = (self.ready.len() - self.given).min(into.len());
        into[..more].copy_from_slice(&self.ready[self.given..self.given + more]);
        self.given += more;
        Ok(more)
    }
}

fn is_time_out(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// A connection on which the log comes, with the most words that the server knows.
fn watch(server: &str, wordings: &[&'static str]) -> Result<(TcpStream, &'static str), String> {
    let mut refused = String::new();
    for words in wordings {
        let mut log = open(server)?;
        let failed = |error: io::Error| {
            let why =
                if is_time_out(&error) { "none within 5 s".to_owned() } else { error.to_string() };
            format!("no answer to `watch`: {why}")
        };
        log.write_all(format!("watch {words}\r\n").as_bytes()).map_err(failed)?;
        let mut answer = Vec::new();
        let mut byte = [0];
        // Byte by byte: the first lines of the log follow at once.
        while !answer.ends_with(b"\n")
            && answer.len() < 200
            && log.read(&mut byte).map_err(failed)? > 0
        {
            answer.push(byte[0]);
        }
        refused = String::from_utf8_lossy(&answer).trim_end().to_owned();
        if refused == "OK" {
            log.set_read_timeout(Some(POLL)).map_err(failed)?;
            return Ok((log, words));
        }
    }
    Err(format!(
        "it answers {refused:?} to `watch`: only memcached has it, and not if it runs with -W; it has at most 20 watchers"
    ))
}
