//! The options of `serve`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::thread;

use cachemark_command::process::print_error;
use cachemark_command::units;
use cachemark_server::{Endpoint, IoMode, Settings};
use cachemark_storage::LIMIT_BYTES_MIN;
use clap::ValueEnum;

#[derive(Clone, Copy, ValueEnum)]
enum Io {
    /// One thread for each connection
    Blocking,
    /// Event loops on epoll
    Events,
    /// Event loops on io_uring, or on epoll if the kernel refuses io_uring
    Uring,
    /// Event loops on epoll that poll for a while before they sleep; each needs a CPU of its own
    Busy,
}

#[derive(clap::Args)]
pub struct Arguments {
    /// host:port to listen on, port 0 for any free port; may be repeated
    #[arg(long, default_value = "127.0.0.1:11211")]
    listen: Vec<String>,
    /// A Unix socket to listen on as well; may be repeated
    #[arg(long)]
    unix: Vec<PathBuf>,
    /// The permissions of the files of Unix sockets, in octal
    #[arg(long, default_value = "700", value_parser = unix_mode)]
    unix_mode: u32,
    /// Close connections that send nothing for this number of seconds [default: never]
    #[arg(long, default_value = "0")]
    idle_timeout_s: u32,
    /// host:port to answer UDP datagrams on as well; may be repeated
    #[arg(long)]
    udp: Vec<String>,
    /// PEM file of the certificate chain; TCP connections then use TLS
    #[arg(long, requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file of the certificate's key
    #[arg(long, requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// File with lines of user:password; clients then have to log in (SASL PLAIN or CRAM-MD5, or `set` of the text protocol)
    #[arg(long)]
    pub auth_file: Option<PathBuf>,
    /// How connections are served: I/O and threads
    #[arg(long, value_enum, default_value = "events")]
    io: Io,
    /// Number of event loops [default: number of CPUs]
    #[arg(long, value_parser = threads)]
    threads: Option<u64>,
    /// Memory for items and hash table (64m, 1g)
    #[arg(long, default_value = "64m", value_parser = memory)]
    memory: u64,
    /// Use a hash table of 2 to this power slots that never grows [default: it grows]
    #[arg(long)]
    pub hash_power: Option<u32>,
    /// The largest item, from 1k to 1g
    #[arg(short = 'I', long, default_value = "1m", value_parser = item_size)]
    max_item_size: u64,
    /// The most simultaneous connections
    #[arg(long, default_value = "1024", value_parser = units::whole)]
    max_connections: u64,
    /// Stop when stdin ends, so that the server does not outlive its caller
    #[arg(long)]
    pub stop_with_stdin: bool,
    /// File to write at the end, with the turns of each connection (JSON lines; --io blocking)
    #[arg(long, conflicts_with = "script")]
    pub traffic_log: Option<PathBuf>,
    /// Answer reads as this script (TOML) says, on one thread; `stats reset` restarts the script
    #[arg(long, conflicts_with_all = ["io", "threads", "udp", "tls_cert", "auth_file", "hash_power"])]
    pub script: Option<PathBuf>,
    /// File to write at the end: when each read arrived and was answered (JSON)
    #[arg(long, requires = "script")]
    pub log: Option<PathBuf>,
    /// How many reads fit into the log
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
            unix_mode: self.unix_mode,
            idle_timeout_s: self.idle_timeout_s,
            ..Settings::default()
        }
    }
}

/// More event loops do not help on any machine.
const THREADS_MAX: u64 = 1024;
/// memcached's own bounds for -I.
const ITEM_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 30;

fn threads(text: &str) -> Result<u64, String> {
    let why = format!("at most {THREADS_MAX}; one event loop for each CPU is enough");
    within(1..=THREADS_MAX, units::whole(text)?, text, &why)
}

/// The store needs a minimum. A smaller number most likely lacks its unit.
fn memory(text: &str) -> Result<u64, String> {
    let why = "at least 64k; write the unit, as in 64m";
    within(LIMIT_BYTES_MIN as u64..=u64::MAX, units::bytes(text)?, text, why)
}

fn item_size(text: &str) -> Result<u64, String> {
    within(ITEM_BYTES, units::bytes(text)?, text, "use a size from 1k to 1g")
}

fn unix_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("{text:?}: write octal permissions, as in 700"))
}

fn within(allowed: RangeInclusive<u64>, number: u64, text: &str, why: &str) -> Result<u64, String> {
    if allowed.contains(&number) { Ok(number) } else { Err(format!("{text:?}: {why}")) }
}

fn io_mode(io: Io) -> IoMode {
    let mode = match io {
        Io::Blocking => IoMode::Blocking,
        Io::Events => IoMode::Events,
        Io::Uring => IoMode::Uring,
        Io::Busy => IoMode::Busy,
    };
    let Some(reason) = mode.unavailable_reason() else { return mode };
    print_error(&format!("{reason}; using --io events instead"));
    IoMode::Events
}
