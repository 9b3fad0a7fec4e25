//! The verbs `null-server` and `null-client`: the floor under a server's and a client's CPU time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cachemark_load::Address;
use cachemark_null::{Counting, Floor, Plan, Responder, play};
use cachemark_tape::Tape;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::workload::WorkloadArguments;
use crate::{fail, serve, units};

#[derive(clap::Args)]
pub struct ServerArguments {
    /// host:port to listen on, port 0 for any, or unix:/path
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// What each request is answered with; \r and \n are a line's end
    #[arg(long, default_value = "END\\r\\n")]
    reply: String,
    /// Answer with the value of this tape's first key instead: a hit, where the tape has one key
    #[arg(long, conflicts_with = "reply")]
    tape: Option<PathBuf>,
    /// Each request has so many bytes; by default each is one line
    #[arg(long, value_parser = units::whole)]
    request_bytes: Option<u64>,
    /// Stop when stdin ends, so that nothing is left behind by a caller that dies
    #[arg(long)]
    stop_with_stdin: bool,
}

#[derive(clap::Args)]
pub struct ClientArguments {
    /// host:port or unix:/path
    #[arg(long)]
    server: String,
    #[command(flatten)]
    workload: WorkloadArguments,
    /// Play this tape instead of making one
    #[arg(long)]
    tape: Option<PathBuf>,
    /// Connections, all of one thread
    #[arg(long, default_value = "1", value_parser = units::whole)]
    connections: u64,
    /// Requests outstanding on each connection
    #[arg(long, default_value = "1", value_parser = units::whole)]
    depth: u64,
    /// Bytes of each reply, where it is not the tape's value
    #[arg(long, value_parser = units::whole)]
    reply_bytes: Option<u64>,
    /// Played first and not counted
    #[arg(long, default_value = "1s", value_parser = units::duration)]
    warmup: Duration,
    /// Length of the measured window
    #[arg(long, default_value = "10s", value_parser = units::duration)]
    duration: Duration,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "listening")]
struct Listening<'a> {
    addresses: [&'a str; 1],
    pid: u32,
}

#[derive(Serialize)]
struct Document {
    ops: u64,
    elapsed_ns: u64,
    cpu_user_ns: u64,
    cpu_system_ns: u64,
}

/// Runs the verb `null-server`; the exit code is the process's own.
pub fn run_server(arguments: ServerArguments) -> ExitCode {
    respond(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

/// Runs the verb `null-client`: its figures as one JSON document.
pub fn run_client(arguments: ClientArguments) -> ExitCode {
    match floor(&arguments) {
        Ok(Floor { ops, elapsed_ns, cpu_user_ns, cpu_system_ns }) => {
            let document = Document { ops, elapsed_ns, cpu_user_ns, cpu_system_ns };
            println!("{}", serde_json::to_string(&document).expect("plain values"));
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

fn respond(arguments: &ServerArguments) -> Result<(), String> {
    let address = Address::parse(&arguments.listen).map_err(|text| format!("--listen {text}"))?;
    let reply = match &arguments.tape {
        Some(path) => hit(&opened(path)?),
        None => arguments.reply.replace("\\r", "\r").replace("\\n", "\n").into_bytes(),
    };
    if reply.is_empty() {
        return Err("--reply: nothing to answer with".to_owned());
    }
    let counting =
        arguments.request_bytes.map_or(Counting::Lines, |each| Counting::Bytes(each as usize));
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|e| e.to_string())?;
    }
    let mut responder = Responder::listen(&address, &reply, counting)
        .map_err(|error| format!("--listen {}: {error}", arguments.listen))?;
    serve::tell(&Listening { addresses: [responder.address()], pid: std::process::id() })?;
    if arguments.stop_with_stdin {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            serve::until_stdin_ends();
            stop.store(true, Ordering::Relaxed);
        });
    }
    responder.run(&stop).map_err(|error| error.to_string())
}

fn hit(tape: &Tape) -> Vec<u8> {
    let value = tape.value(0, tape.value_length(0));
    let mut reply = b"VALUE ".to_vec();
    reply.extend_from_slice(tape.key(0));
    reply.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
    reply.extend_from_slice(value);
    reply.extend_from_slice(b"\r\nEND\r\n");
    reply
}

fn floor(arguments: &ClientArguments) -> Result<Floor, String> {
    let address = Address::parse(&arguments.server).map_err(|text| format!("--server {text}"))?;
    let tape = match &arguments.tape {
        Some(path) => opened(path)?,
        None => made(&arguments.workload)?,
    };
    let plan = Plan::of(&tape, arguments.reply_bytes.map(|bytes| bytes as usize))?;
    let load = (arguments.connections as usize, arguments.depth as usize);
    play(&address, &plan, load, (arguments.warmup, arguments.duration))
        .map_err(|error| format!("--server {}: {error}", arguments.server))
}

fn opened(path: &Path) -> Result<Tape, String> {
    Tape::open(path).map_err(|error| format!("--tape {}: {error}", path.display()))
}

fn made(workload: &WorkloadArguments) -> Result<Tape, String> {
    let bytes = workload.tape(None)?;
    Tape::from_bytes(bytes).map_err(|error| error.to_string())
}
