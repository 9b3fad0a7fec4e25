//! The worker for memcached clients in Rust: `worker CLIENT` speaks the worker protocol (PROTOCOL.md).
//!
//! `worker` answers requests, `lane` has the measured loops, `tape` says what is to be done, `judge`
//! what an answer comes to, `tally` its sums, `course` the window by slices; `client` is what a file of `clients` gives, one library each.

mod client;
mod clients;
mod course;
mod judge;
mod lane;
mod tally;
mod tape;
mod worker;

use std::fs::File;
use std::process::ExitCode;

use worker::Worker;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let serve: fn(File) = match name.as_str() {
        "async-memcached" => Worker::<clients::async_memcached::AsyncMemcached>::serve,
        "memcache" => Worker::<clients::memcache::Memcache>::serve,
        "moka" => Worker::<clients::moka::Moka>::serve,
        "null" => Worker::<clients::null::Null>::serve,
        _ => {
            eprintln!("worker CLIENT: one of async-memcached, memcache, moka, null");
            return ExitCode::from(2);
        }
    };
    // Stdout is the protocol's alone, whatever a library prints.
    let out = nix::unistd::dup(std::io::stdout()).map(File::from);
    let moved = nix::unistd::dup2_stdout(std::io::stderr());
    let (Ok(out), Ok(())) = (out, moved) else { return ExitCode::FAILURE };
    serve(out);
    // At once: a thread of a library may not come back.
    std::process::exit(0);
}
