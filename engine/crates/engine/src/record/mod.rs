//! The verb `record`: record the traffic of a running memcached by its `watch`.

mod control;
mod watcher;

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use cachemark_trace::file::Summary;
use cachemark_trace::{Conversion, Converted, Format, ImportOptions, Output, convert};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::options::units;
use crate::process::{fail, print_compact_json, print_error};
use crate::whole_file;
use control::Control;
use watcher::{Limits, Watcher};

const BUFFER_BYTES: usize = 1 << 18;

#[derive(clap::Args)]
pub struct Arguments {
    /// The memcached, as HOST:PORT
    server: String,
    /// The trace to write, in cachemark's own format
    #[arg(long)]
    out: PathBuf,
    /// How long to record (60s)
    #[arg(long, value_parser = units::duration)]
    duration: Option<Duration>,
    /// End after so many requests (1m)
    #[arg(long, value_parser = units::whole)]
    requests: Option<u64>,
    /// End when memcached has sent so many bytes (1g): the trace takes about a tenth
    #[arg(long, value_parser = units::bytes)]
    size: Option<u64>,
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
    let place = |error: String| format!("{}: {error}", arguments.server);
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ends))
            .map_err(|error| error.to_string())?;
    }
    let limits = Limits {
        duration: arguments.duration,
        requests: arguments.requests,
        bytes: arguments.size,
        ends,
    };
    let control = Control::connect(&arguments.server).map_err(place)?;
    let conversion = Conversion {
        output: Output::Cachemark,
        anonymous: !arguments.plain_keys,
        sampled: arguments.sample,
        tolerant: true,
        source: Some(format!("watch of {}", control.version())),
    };
    let watcher = Watcher::start(control, limits).map_err(place)?;
    print_error(&format!(
        "{} is recorded until the limits that you gave, or Ctrl-C",
        arguments.server
    ));
    let found = watcher.findings();
    let mut from = BufReader::with_capacity(BUFFER_BYTES, watcher);
    let options = ImportOptions { format: Some(Format::Memcached), ..ImportOptions::default() };
    let mut ending = |summary: &mut Summary| found.borrow().add_to(summary);
    let recorded = whole_file::write_with(&arguments.out, |into| {
        convert(&mut from, &options, &conversion, into, &mut ending)
    });
    let unwritable = |error| format!("{}: cannot be written: {error}", arguments.out.display());
    recorded.map_err(unwritable)?.map_err(place)
}
