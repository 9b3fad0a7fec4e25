//! `serve` without a script: the embedded server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cachemark_command::process::{StopSignals, print_error};
use cachemark_command::whole_file::{self, write_error};
use cachemark_server::{
    Accounts, ConnectionTraffic, IoMode, State, Tls, TlsSettings, TrafficLog, start,
};
use cachemark_storage::Store;

use crate::serve::announcement::announce;
use crate::serve::arguments::Arguments;

/// The answer to `version`. It begins with the version of memcached whose behaviour the server follows,
/// because clients check that number.
pub const VERSION: &str = concat!("1.6.45-cachemark-", env!("CARGO_PKG_VERSION"));

/// Serve until a signal to stop.
pub fn serve(arguments: &Arguments) -> Result<(), String> {
    return_large_blocks();
    let settings = arguments.settings();
    if let Some(path) = &arguments.traffic_log {
        check_traffic_log(path, settings.io)?;
    }
    let endpoints = arguments.endpoints();
    // Before the first connection, so that no signal is missed.
    let signals = match arguments.auth_file {
        Some(_) => StopSignals::catch_and_reload(&[])?,
        None => StopSignals::catch()?,
    };
    let store = Store::adjustable(settings.memory_bytes, arguments.hash_power)
        .map_err(|error| format!("--memory, --hash-power: {error}"))?;
    let state = State::with_store(store, settings, VERSION);
    let state = match accounts(arguments)? {
        Some(accounts) => state.with_accounts(accounts),
        None => state,
    };
    let state = match tls(arguments)? {
        Some(tls) => state.with_tls(tls),
        None => state,
    };
    let traffic = Arc::new(TrafficLog::default());
    let state = Arc::new(match arguments.traffic_log {
        Some(_) => state.with_traffic(Arc::clone(&traffic)),
        None => state,
    });
    let mut server = start(&endpoints, &state).map_err(|error| error.to_string())?;
    announce(&server.addresses, settings.io.name(), &settings)?;
    signals.wait_and_reload(arguments.stop_with_stdin, || {
        if let Some(path) = &arguments.auth_file {
            reread_accounts(path, &state);
        }
    });
    server.stop();
    match &arguments.traffic_log {
        Some(path) => write_traffic(path, &traffic.take(CONNECTION_PATIENCE)),
        None => Ok(()),
    }
}

/// How long connections that were shut down may take to end.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(10);

/// Refuse, before the first connection, options whose output would be missing at the end.
fn check_traffic_log(path: &Path, io: IoMode) -> Result<(), String> {
    if io != IoMode::Blocking {
        return Err("--traffic-log needs blocking connections; add --io blocking".to_owned());
    }
    whole_file::check(path).map_err(|error| write_error("--traffic-log", path, &error))
}

fn write_traffic(path: &Path, connections: &[ConnectionTraffic]) -> Result<(), String> {
    let lines: String =
        connections.iter().map(|each| format!("{}\n", traffic_line(each))).collect();
    whole_file::write(path, lines.as_bytes())
        .map_err(|error| write_error("--traffic-log", path, &error))
}

/// A connection's line: the fields of `ConnectionTraffic`, and of `Segments` if it has them.
fn traffic_line(of: &ConnectionTraffic) -> serde_json::Value {
    let segments = of.segments.map(|counted| {
        serde_json::json!({
            "data_in": counted.data_in,
            "data_out": counted.data_out,
            "all_in": counted.all_in,
            "all_out": counted.all_out,
            "retransmitted": counted.retransmitted,
            "round_trip_us": counted.round_trip_us,
        })
    });
    serde_json::json!({
        "turns": of.turns,
        "reads": of.reads,
        "bytes_in": of.bytes_in,
        "bytes_out": of.bytes_out,
        "gaps_ns": of.gaps_ns,
        "longest_gap_ns": of.longest_gap_ns,
        "segments": segments,
    })
}

/// A block of this size is mapped by itself, and unmapped when it is freed.
const LARGE_BLOCK_BYTES: i32 = 128 << 10;

/// Return the buffers of connections to the system when the connections end. By default, glibc raises the
/// threshold to the size of a freed block, up to 32 MiB, and keeps smaller ones (mallopt(3),
/// M_MMAP_THRESHOLD).
pub fn return_large_blocks() {
    // SAFETY: no other thread runs yet. If the call fails, the process only uses more memory.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    }
}

fn tls(arguments: &Arguments) -> Result<Option<Tls>, String> {
    let files = arguments.tls_cert.clone().zip(arguments.tls_key.clone());
    let read = |(certificates, key)| {
        let settings = TlsSettings { certificates, key, ..TlsSettings::default() };
        Tls::read(settings).map_err(|error| format!("TLS: {error}"))
    };
    files.map(read).transpose()
}

fn accounts(arguments: &Arguments) -> Result<Option<Accounts>, String> {
    let Some(path) = &arguments.auth_file else { return Ok(None) };
    read_accounts(path).map(Some).map_err(|error| format!("--auth-file {error}"))
}

/// The users of a file. An error names the file.
pub fn read_accounts(path: &Path) -> Result<Accounts, String> {
    let named = |error: String| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    Accounts::parse(&text).map_err(named)
}

/// Read the users again. A bad file changes nothing.
pub fn reread_accounts(path: &Path, state: &State) {
    match read_accounts(path) {
        Ok(accounts) => state.replace_accounts(accounts),
        Err(error) => print_error(&format!("the users stay as they were: {error}")),
    }
}
