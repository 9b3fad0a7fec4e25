//! The verb `record`: record the traffic of a running memcached by its `watch`, or from captured packets.

mod captured;
mod control;
mod watched;
mod watcher;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cachemark_packets::Ports;
use cachemark_trace::{Conversion, Converted, Output};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::options::units;
use crate::process::{fail, print_compact_json};
use crate::whole_file;

#[derive(clap::Args)]
pub struct Arguments {
    /// The memcached, as HOST:PORT; or captured packets, pcap or pcapng: a file, or - for stdin
    source: String,
    /// The trace to write, in cachemark's own format
    #[arg(long)]
    out: PathBuf,
    /// How long to record (60s)
    #[arg(long, value_parser = units::duration)]
    duration: Option<Duration>,
    /// End after so many requests (1m)
    #[arg(long, value_parser = units::whole)]
    requests: Option<u64>,
    /// End when memcached has sent so many bytes, or so many of a capture were read (1g): the trace takes about a tenth
    #[arg(long, value_parser = units::bytes)]
    size: Option<u64>,
    /// The ports of the memcacheds in a capture, such as 11211,11212 [default: 11211]
    #[arg(long)]
    port: Option<Ports>,
    /// Record one key of so many, with all its requests: 1/100
    #[arg(long, value_parser = units::fraction, default_value = "1/1")]
    sample: u32,
    /// Write keys as they are, instead of a keyed hash whose key is thrown away
    #[arg(long)]
    plain_keys: bool,
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    record(&arguments).map_or_else(fail, |converted| {
        print_compact_json(&converted);
        ExitCode::SUCCESS
    })
}

fn record(arguments: &Arguments) -> Result<Converted, String> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ends))
            .map_err(|error| error.to_string())?;
    }
    if captured::is_capture(&arguments.source) {
        captured::record(arguments, ends)
    } else {
        watched::record(arguments, ends)
    }
}

impl Arguments {
    /// When a recording ends, in words.
    fn end(&self) -> &'static str {
        let is_limited = self.duration.is_some() || self.requests.is_some() || self.size.is_some();
        if is_limited { "until a limit that you gave, or Ctrl-C" } else { "until Ctrl-C" }
    }

    fn conversion(&self) -> Conversion {
        Conversion {
            output: Output::Cachemark,
            anonymous: !self.plain_keys,
            sampled: self.sample,
            tolerant: true,
            source: None,
        }
    }
}

/// Write a trace. An error is that of the filling, or says that there is no place.
fn written(
    out: &Path,
    fill: impl FnOnce(&mut File) -> Result<Converted, String>,
) -> Result<Converted, String> {
    let unwritable = |error| format!("{}: cannot be written: {error}", out.display());
    whole_file::write_with(out, fill).map_err(unwritable)?
}
