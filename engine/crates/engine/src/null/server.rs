//! The verb `null-server`.

use std::path::PathBuf;
use std::process::ExitCode;

use cachemark_command::process::{fail, print_json_line, stop_flag};
use cachemark_command::units;
use cachemark_load::Address;
use cachemark_null::{RequestCounting, Responder};
use cachemark_tape::Tape;
use serde::Serialize;

use crate::options::tape_file;

#[derive(clap::Args)]
pub struct Arguments {
    /// host:port to listen on, port 0 for any, or unix:/path
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// The reply to each request; \r and \n are escapes
    #[arg(long, default_value = "END\\r\\n")]
    reply: String,
    /// Reply with the value of this tape's first key instead: a hit, if the tape has one key
    #[arg(long, conflicts_with = "reply")]
    tape: Option<PathBuf>,
    /// Length of each request [default: each request is one line]
    #[arg(long, value_parser = units::whole)]
    request_bytes: Option<u64>,
    /// Stop when stdin ends, so that the server does not outlive its caller
    #[arg(long)]
    stop_with_stdin: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "listening")]
struct Listening<'a> {
    addresses: [&'a str; 1],
    pid: u32,
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    respond(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn respond(arguments: &Arguments) -> Result<(), String> {
    let address = Address::parse(&arguments.listen).map_err(|text| format!("--listen {text}"))?;
    let reply = match &arguments.tape {
        Some(path) => hit(&tape_file::open(path)?),
        None => arguments.reply.replace("\\r", "\r").replace("\\n", "\n").into_bytes(),
    };
    if reply.is_empty() {
        return Err("--reply: the reply is empty".to_owned());
    }
    let counting = arguments
        .request_bytes
        .map_or(RequestCounting::Lines, |each| RequestCounting::Bytes(each as usize));
    let stop = stop_flag(arguments.stop_with_stdin)?;
    let mut responder = Responder::listen(&address, &reply, counting)
        .map_err(|error| format!("--listen {}: {error}", arguments.listen))?;
    print_json_line(&Listening { addresses: [responder.address()], pid: std::process::id() })?;
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
