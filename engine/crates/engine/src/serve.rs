//! The verb `serve`: the embedded server as a process; with a script, the fidelity server.

use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use cachemark_server::{Accounts, Endpoint, IoMode, Settings, State, Tls, start};
use cachemark_storage::{LIMIT_BYTES_LEAST, Store};
use clap::ValueEnum;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{fail, scripted, units};

/// What `version` answers: clients look for memcached's number, so it begins with the one whose
/// semantics are followed.
const VERSION: &str = concat!("1.6.45-cachemark-", env!("CARGO_PKG_VERSION"));

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
    tls_cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Lines of user:password: clients have to tell who they are (SASL PLAIN, or the text protocol's set)
    #[arg(long)]
    auth_file: Option<PathBuf>,
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
    hash_power: Option<u32>,
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
    within(LIMIT_BYTES_LEAST as u64..=u64::MAX, units::bytes(text)?, text, why)
}

fn item_size(text: &str) -> Result<u64, String> {
    within(ITEM_BYTES, units::bytes(text)?, text, "the largest item is from 1k to 1g")
}

fn within(allowed: RangeInclusive<u64>, number: u64, text: &str, why: &str) -> Result<u64, String> {
    if allowed.contains(&number) { Ok(number) } else { Err(format!("{text:?}: {why}")) }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "listening")]
struct Listening<'a> {
    addresses: &'a [String],
    pid: u32,
    version: &'static str,
    io: &'a str,
    threads: usize,
    memory_bytes: u64,
}

/// Runs the verb; the exit code is the process's own.
pub fn run(arguments: Arguments) -> ExitCode {
    let served = match &arguments.script {
        Some(path) => scripted::serve(&arguments, path),
        None => serve(&arguments),
    };
    served.map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn serve(arguments: &Arguments) -> Result<(), String> {
    give_large_blocks_back();
    let settings = settings(arguments);
    let endpoints = arguments.endpoints();
    // Watched before the first connection, so that no signal is missed.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|error| error.to_string())?;
    let store = Store::with_hash_power(settings.memory_bytes, arguments.hash_power)
        .map_err(|error| format!("--memory, --hash-power: {error}"))?;
    let state = State::over(store, settings, VERSION);
    let state = match accounts(arguments)? {
        Some(accounts) => state.only_for(accounts),
        None => state,
    };
    let state = Arc::new(match tls(arguments)? {
        Some(tls) => state.with_tls(tls),
        None => state,
    });
    let mut server = start(&endpoints, &state).map_err(|error| error.to_string())?;
    announce(&server.addresses, settings.io.name(), &settings)?;
    let (stop, stopped) = channel();
    if arguments.stop_with_stdin {
        let stop = stop.clone();
        thread::spawn(move || wait_for_stdin(&stop));
    }
    thread::spawn(move || {
        signals.forever().next();
        // The receiver is gone only once the server has stopped.
        let _ = stop.send(());
    });
    let _ = stopped.recv();
    server.stop();
    Ok(())
}

/// So large a block is mapped by itself, and unmapped when it is freed.
const LARGE_BLOCK_BYTES: i32 = 128 << 10;

/// What connections hold goes back to the system when they end. glibc's allocator would raise that
/// size to what is freed, up to 32 MiB, and keep such blocks (mallopt(3), M_MMAP_THRESHOLD).
fn give_large_blocks_back() {
    // SAFETY: no other thread is there yet. Where it is refused, more memory is held, no more.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    }
}

pub fn settings(arguments: &Arguments) -> Settings {
    let cpus = thread::available_parallelism().map_or(1, |count| count.get() as u64);
    Settings {
        io: io_mode(arguments.io),
        threads: arguments.threads.unwrap_or(cpus) as usize,
        memory_bytes: arguments.memory as usize,
        item_bytes_max: arguments.max_item_size,
        max_connections: arguments.max_connections,
    }
}

fn io_mode(io: Io) -> IoMode {
    let wanted = match io {
        Io::Blocking => IoMode::Blocking,
        Io::Events => IoMode::Events,
        Io::Uring => IoMode::Uring,
        Io::Busy => IoMode::Busy,
    };
    let Some(reason) = wanted.refusal() else { return wanted };
    eprintln!("cachemark-engine: {reason}: --io events instead");
    IoMode::Events
}

fn tls(arguments: &Arguments) -> Result<Option<Tls>, String> {
    match arguments.tls_cert.as_ref().zip(arguments.tls_key.as_ref()) {
        Some((certificates, key)) => {
            Tls::read(certificates, key).map(Some).map_err(|error| format!("TLS: {error}"))
        }
        None => Ok(None),
    }
}

fn accounts(arguments: &Arguments) -> Result<Option<Accounts>, String> {
    let Some(path) = &arguments.auth_file else { return Ok(None) };
    let named = |error: String| format!("--auth-file {}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    Accounts::parse(&text).map(Some).map_err(named)
}

/// Say where it listens, and how.
pub fn announce(addresses: &[String], io: &str, settings: &Settings) -> Result<(), String> {
    let listening = Listening {
        addresses,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        io,
        threads: settings.threads,
        memory_bytes: settings.memory_bytes as u64,
    };
    tell(&listening)
}

/// One line of JSON on stdout, at once.
pub fn tell(message: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(message).expect("plain values");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|error| format!("nobody reads stdout: {error}"))
}

/// Block until the caller closes stdin, or dies.
pub fn until_stdin_ends() {
    let mut ignored = [0; 256];
    while io::stdin().lock().read(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
}

fn wait_for_stdin(stop: &Sender<()>) {
    until_stdin_ends();
    let _ = stop.send(());
}
