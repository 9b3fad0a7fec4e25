//! The line that `serve` prints once the server listens.

use cachemark_command::process::print_json_line;
use cachemark_server::Settings;
use serde::Serialize;

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

/// Print where the server listens, and with which settings.
pub fn announce(addresses: &[String], io: &str, settings: &Settings) -> Result<(), String> {
    let listening = Listening {
        addresses,
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        io,
        threads: settings.threads,
        memory_bytes: settings.memory_bytes as u64,
    };
    print_json_line(&listening)
}
