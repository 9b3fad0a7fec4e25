//! The options of `serve`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread;

use cachemark_server::{Endpoint, IoMode, Settings};
use cachemark_storage::LIMIT_BYTES_MIN;
use clap::ValueEnum;

use crate::options::units;

#[derive(Clone, Copy, ValueEnum)]
enum Io {
    /// A thread for each connection
    Blocking,
    /// Event loops
    Events,
    /// Event loops on io_uring; events where the kernel refuses it
    Uring,
    /// Event loops that go on asking for a while before they sleep: each wants a CPU for itself
    Busy,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// host:port to listen on, port 0 for any; may be repeated
    #[arg(long, default_value = "127.0.0.1:11211")]
    listen: Vec<String>,
    /// A Unix socket to listen on besides
    #[arg(long)]
    unix: Vec<PathBuf>,
    /// host:port to answer datagrams on besides; may be repeated
    #[arg(long)]
    udp: Vec<String>,
    /// Certificates in PEM: TCP connections are TLS
    #[arg(long, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Lines of user:password: clients have to tell who they are (SASL PLAIN, or the text protocol's set)
    #[arg(long)]
    pub auth_file: Option<PathBuf>,
    /// How connections are served
    #[arg(long, value_enum, default_value = "events")]
    io: Io,
    /// Event loops; as many as CPUs by default
    #[arg(long, value_parser = threads)]
    threads: Option<u64>,
    /// Memory of all items (64m, 1g)
    #[arg(long, default_value = "64m", value_parser = memory)]
    memory: u64,
    /// A hash table of 2 to this power slots that never grows; it grows without
    #[arg(long)]
    pub hash_power: Option<u32>,
    /// The largest item (1m), from 1k to 1g
    #[arg(short = 'I', long, default_value = "1m", value_parser = item_size)]
    max_item_size: u64,
    /// Connections at once
    #[arg(long, default_value = "1024", value_parser = units::whole)]
    max_connections: u64,
    /// Stop when stdin ends, so that nothing is left behind by a caller that dies
    #[arg(long)]
    pub stop_with_stdin: bool,
    /// Answer reads by this script (TOML), on one thread; `stats reset` begins it anew
    #[arg(long, conflicts_with_all = ["io", "threads", "udp", "tls_cert", "auth_file", "hash_power"])]
    pub script: Option<PathBuf>,
    /// Where to write, at the end, when each read came and was answered (JSON)
    #[arg(long, requires = "script")]
    pub log: Option<PathBuf>,
    /// Reads that the log has room for
    #[arg(long, default_value = "1M", requires = "script", value_parser = units::whole)]
    pub log_requests: u64,
}

impl Arguments {
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let tcp = self.listen.iter().cloned().map(Endpoint::Tcp);
        let unix = self.unix.iter().cloned().map(Endpoint::Unix);
        tcp.chain(unix).chain(self.udp.iter().cloned().map(Endpoint::Udp)).collect()
    }

    pub fn settings(&self) -> Settings {
        let cpus = thread::available_parallelism().map_or(1, |count| count.get() as u64);
        Settings {
            io: io_mode(self.io),
            threads: self.threads.unwrap_or(cpus) as usize,
            memory_bytes: self.memory as usize,
            item_bytes_max: self.max_item_size,
            max_connections: self.max_connections,
        }
    }
}

/// More loops help no machine.
const THREADS_MOST: u64 = 1024;
/// memcached's own bounds of -I.
const ITEM_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 30;

fn threads(text: &str) -> Result<u64, String> {
    let why = format!("a loop for each CPU is enough, and {THREADS_MOST} the most");
    within(1..=THREADS_MOST, units::whole(text)?, text, &why)
}

/// A store is never smaller: less is a unit forgotten.
fn memory(text: &str) -> Result<u64, String> {
    let why = "at least 64k is needed; say the unit, as in 64m";
    within(LIMIT_BYTES_MIN as u64..=u64::MAX, units::bytes(text)?, text, why)
}

fn item_size(text: &str) -> Result<u64, String> {
    within(ITEM_BYTES, units::bytes(text)?, text, "the largest item is from 1k to 1g")
}

fn within(allowed: RangeInclusive<u64>, number: u64, text: &str, why: &str) -> Result<u64, String> {
    if allowed.contains(&number) { Ok(number) } else { Err(format!("{text:?}: {why}")) }
}

fn io_mode(io: Io) -> IoMode {
    let wanted = match io {
        Io::Blocking => IoMode::Blocking,
        Io::Events => IoMode::Events,
        Io::Uring => IoMode::Uring,
        Io::Busy => IoMode::Busy,
    };
    let Some(reason) = wanted.unavailable_reason() else { return wanted };
    eprintln!("cachemark-engine: {reason}: --io events instead");
    IoMode::Events
}
