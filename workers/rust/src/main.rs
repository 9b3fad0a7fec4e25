//! The worker for memcached clients in Rust: `worker CLIENT` speaks the worker protocol (PROTOCOL.md).
//!
//! `worker` answers requests; `prepare` is what a trial asks for; `player` is one prepared trial, `lane`
//! has the measured loops, `slices` its short turns, `watch` what the main thread sees of a lane; `window` is
//! when a run begins and ends, `tape` says what is to be done, `verify` the result of a reply, `recorder` its
//! sums, `groups` the times of whole groups, `call_log` a record of each call, `give_up` callers that give up
//! calls, `renewal` connections that are opened again as asked, `histogram` how times travel, `timeline` the
//! window in slices and sections; `client` is what a file of `clients` gives, one for each library.

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
    // Stdout is the protocol's alone, whatever a library prints.
    let out = nix::unistd::dup(std::io::stdout()).map(File::from);
    let moved = nix::unistd::dup2_stdout(std::io::stderr());
    let (Ok(out), Ok(())) = (out, moved) else { return ExitCode::FAILURE };
    serve(name, out);
    // At once: a thread of a library may not come back.
    std::process::exit(0);
}
