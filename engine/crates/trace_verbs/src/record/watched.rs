//! A running memcached, recorded by its `watch`.

use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cachemark_command::process::print_error;
use cachemark_trace::file::Summary;
use cachemark_trace::{Conversion, Converted, Format, ImportOptions, convert};

use super::arguments::{Arguments, written};
use super::control::Control;
use super::watcher::{Limits, Watcher};

const BUFFER_BYTES: usize = 1 << 18;

/// Record until a limit or a signal ends it. An error names the server or the trace.
pub fn record(arguments: &Arguments, ends: Arc<AtomicBool>) -> Result<Converted, String> {
    let server = &arguments.source;
    let place = |error: String| format!("{server}: {error}");
    if arguments.port.is_some() {
        return Err(place("--port is for captures of packets".to_owned()));
    }
    let limits = Limits {
        duration: arguments.duration,
        requests: arguments.requests,
        bytes: arguments.size,
        ends,
    };
    let control = Control::connect(server).map_err(place)?;
    let source = Some(format!("watch of {}", control.version()));
    let conversion = Conversion { source, ..arguments.conversion() };
    let watcher = Watcher::start(control, limits).map_err(place)?;
    print_error(&format!("recording {server} {}", arguments.end()));
    let found = watcher.findings();
    let mut from = BufReader::with_capacity(BUFFER_BYTES, watcher);
    let options = ImportOptions { format: Some(Format::Memcached), ..ImportOptions::default() };
    let mut ending = |summary: &mut Summary| found.borrow().add_to(summary);
    written(&arguments.out, |into| {
        convert(&mut from, &options, &conversion, into, &mut ending).map_err(place)
    })
}
