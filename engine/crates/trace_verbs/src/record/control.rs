//! The requests to the server besides its log: its version and its counters.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const TIME_OUT: Duration = Duration::from_secs(5);
const NOT_RECORDED: &str = "servers with TLS or a login cannot be recorded";
const MOST_LINES: usize = 1000;
/// The cost of commands, and the lines that the log lost.
const COUNTERS: [&str; 16] = [
    "cmd_get",
    "get_hits",
    "get_misses",
    "cmd_set",
    "cmd_touch",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
    "cmd_meta",
    "evictions",
    "log_worker_dropped",
    "log_watcher_skipped",
    "total_connections",
];

pub fn open(server: &str) -> Result<TcpStream, String> {
    let addresses = server.to_socket_addrs().map_err(|error| format!("no address: {error}"))?;
    let mut refused = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, TIME_OUT) {
            Ok(connection) => {
                connection.set_read_timeout(Some(TIME_OUT)).map_err(|error| error.to_string())?;
                return Ok(connection);
            }
            Err(error) => refused = format!("no connection: {error}"),
        }
    }
    Err(refused)
}

/// A connection for questions.
pub struct Control {
    server: String,
    version: String,
    from: BufReader<TcpStream>,
}

/// The counters at one moment, and the process that counted.
pub struct Counters {
    pid: String,
    counts: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// How much each counter grew since `before`; nothing if the server was started anew.
    pub fn since(&self, before: &Counters) -> BTreeMap<String, u64> {
        let grown = |(name, count): (&&'static str, &u64)| {
            let before = before.counts.get(name)?;
            Some(((*name).to_owned(), count.checked_sub(*before)?))
        };
        if self.pid == before.pid {
            self.counts.iter().filter_map(grown).collect()
        } else {
            BTreeMap::new()
        }
    }
}

impl Control {
    pub fn connect(server: &str) -> Result<Control, String> {
        let from = BufReader::new(open(server)?);
        let mut control = Control { server: server.to_owned(), version: String::new(), from };
        let line = control.ask("version", |_| true)?.pop().unwrap_or_default();
        let version = line
            .strip_prefix("VERSION ")
            .ok_or_else(|| format!("it answers {line:?} to `version`: {NOT_RECORDED}"))?;
        control.version = format!("memcached {version}");
        Ok(control)
    }

    pub fn server(&self) -> &str {
        &self.server
    }

    pub fn version(&self) -> &str {
        &self.version
    }

    /// Read a key that no client stores: its line in the log shows where the log is.
    pub fn mark(&mut self, key: &str) -> Result<(), String> {
        self.ask(&format!("get {key}"), |line| line == "END").map(|_| ())
    }

    pub fn counters(&mut self) -> Result<Counters, String> {
        let stats = self.stats()?;
        let count = |name: &'static str| Some((name, stats.get(name)?.parse().ok()?));
        Ok(Counters {
            pid: stats.get("pid").cloned().unwrap_or_default(),
            counts: COUNTERS.into_iter().filter_map(count).collect(),
        })
    }

    pub fn stats(&mut self) -> Result<BTreeMap<String, String>, String> {
        let lines = self.ask("stats", |line| line == "END")?;
        let stat = |line: &String| {
            let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        };
        Ok(lines.iter().filter_map(stat).collect())
    }

    /// Connect again, if the server went away.
    pub fn reconnect(&mut self) -> Result<(), String> {
        self.from = BufReader::new(open(&self.server)?);
        Ok(())
    }

    /// Send a command and read lines up to the last one.
    fn ask(&mut self, command: &str, is_last: fn(&str) -> bool) -> Result<Vec<String>, String> {
        let no_answer = |error: std::io::Error| {
            let why = match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => "none within 5 s".to_owned(),
                ErrorKind::ConnectionReset => format!("{error}: {NOT_RECORDED}"),
                _ => error.to_string(),
            };
            format!("no answer to `{command}`: {why}")
        };
        self.from.get_mut().write_all(format!("{command}\r\n").as_bytes()).map_err(no_answer)?;
        let mut lines = Vec::new();
        while lines.len() < MOST_LINES {
            let mut line = String::new();
            if self.from.read_line(&mut line).map_err(no_answer)? == 0 {
                return Err(format!("no answer to `{command}`: it closed the connection"));
            }
            let line = line.trim_end().to_owned();
            let ends = is_last(&line) || line.starts_with("ERROR") || line.contains("_ERROR");
            lines.push(line);
            if ends {
                return Ok(lines);
            }
        }
        Err(format!("its answer to `{command}` has no end"))
    }
}
