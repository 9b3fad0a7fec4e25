//! The worker for memcached clients in Rust: `worker CLIENT` speaks the worker protocol (PROTOCOL.md).
//!
//! `worker` answers requests; `prepare` has a trial's settings; `player` is one prepared trial, `lane` has
//! the measured loops, `slices` their short turns, `watch` the main thread's view of a lane; `window` has the
//! begin and the end of a run, `tape` the operations, `verify` the result of a reply, `recorder` the sums,
//! `groups` the times of whole groups, `call_log` a record of each call, `give_up` callers that give up calls,
//! `renewal` connections that are closed and reopened, `histogram` the encoding of times, `timeline` the
//! window in slices and sections; `client` is the interface of the files in `clients`, one for each library.

mod call_log;
mod client;
mod clients;
mod generations;
mod give_up;
mod groups;
mod histogram;
mod lane;
mod lane_record;
mod operation;
mod panics;
mod player;
mod prepare;
mod recorder;
mod renewal;
mod slices;
mod tape;
mod timeline;
mod verify;
mod watch;
mod window;
mod worker;

use std::fs::File;
use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((name, serve)) = clients::find(&name) else {
        eprintln!("worker CLIENT: one of {}", clients::NAMES.join(", "));
        return ExitCode::from(2);
    };
    panics::watch();
    // Stdout is for the protocol only, even if a library prints.
    let out = nix::unistd::dup(std::io::stdout()).map(File::from);
    let moved = nix::unistd::dup2_stdout(std::io::stderr());
    let (Ok(out), Ok(())) = (out, moved) else { return ExitCode::FAILURE };
    serve(name, out);
    // At once: a thread of a library may never return.
    std::process::exit(0);
}
