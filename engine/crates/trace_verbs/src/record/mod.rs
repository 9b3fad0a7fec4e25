//! The verb `record`: record the traffic of a running memcached by its `watch`, or from captured packets; or what it
//! holds, by `lru_crawler metadump`.

mod arguments;
mod captured;
mod control;
mod snapshot;
mod watched;
mod watcher;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cachemark_command::process::{fail, print_compact_json};
use cachemark_trace::Converted;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

pub use self::arguments::Arguments;

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
    if arguments.snapshot {
        snapshot::record(arguments, &ends)
    } else if captured::is_capture(&arguments.source) {
        captured::record(arguments, ends)
    } else {
        watched::record(arguments, ends)
    }
}
