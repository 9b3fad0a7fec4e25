//! The verb `fault-proxy`: a proxy that misbehaves on command.

use std::fs::File;
use std::io::{self, BufRead};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use cachemark_command::process::{fail, print_json_line, print_text, stop_flag};
use cachemark_command::units;
use cachemark_fault_proxy::{
    CommandSender, FaultProxy, FaultProxySettings, KINDS, Kind, Parameter, ParameterType,
    parse_command,
};
use serde::Serialize;

#[derive(clap::Args)]
pub struct Arguments {
    /// host:port to listen on, port 0 for any
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: String,
    /// host:port of the memcached server behind it
    #[arg(long, required_unless_present = "list")]
    upstream: Option<String>,
    /// Write connections, faults and injected bytes to this file, as JSON lines
    #[arg(long)]
    log: Option<PathBuf>,
    /// The most events in the log; further ones are only counted
    #[arg(long, default_value = "1M", value_parser = units::whole)]
    log_events: u64,
    /// The most clients at a time; further ones wait
    #[arg(long, default_value = "1024")]
    connections: NonZeroUsize,
    /// List the kinds of faults and their parameters, and do nothing else
    #[arg(long)]
    list: bool,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer<'a> {
    Applied { applied_ns: u64 },
    Error { error: &'a str },
}

/// Why the proxy ended.
struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure(error.to_string())
    }
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    if arguments.list {
        print_text(list());
        return ExitCode::SUCCESS;
    }
    proxy(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn proxy(arguments: &Arguments) -> Result<(), String> {
    let log = arguments.log.as_ref().map(|path| {
        File::create(path).map_err(|error| format!("--log {}: {error}", path.display()))
    });
    let settings = FaultProxySettings {
        listen: address("--listen", &arguments.listen)?,
        upstream: address("--upstream", arguments.upstream.as_deref().unwrap_or_default())?,
        connections_max: arguments.connections.get(),
        log: log.transpose()?,
        log_events_max: arguments.log_events as usize,
    };
    let stop = stop_flag(false)?;
    let mut proxy = FaultProxy::listen(settings)
        .map_err(|error| format!("--listen {}: {error}", arguments.listen))?;
    print_json_line(&Listening { listening: proxy.address().to_string() })?;
    let commands = proxy.commands();
    thread::spawn(move || read_commands(&commands));
    let answered = proxy.run(&stop, |answer| {
        let answer = match answer {
            Ok(applied_ns) => Answer::Applied { applied_ns: *applied_ns },
            Err(error) => Answer::Error { error },
        };
        print_json_line(&answer).map_err(Failure)
    });
    answered.map_err(|Failure(error)| error)
}

fn address(option: &str, text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| format!("{option} {text}: {error}"))?;
    found.next().ok_or_else(|| format!("{option} {text}: no such host"))
}

/// Pass the lines of stdin on as commands. Its end ends the proxy.
fn read_commands(commands: &CommandSender) {
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) => commands.send(parse_command(&line)),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                commands.send(Err("no UTF-8".to_owned()));
            }
            Err(_) => break,
        }
    }
    commands.stop();
}

fn list() -> String {
    KINDS.iter().map(kind).collect()
}

fn kind(kind: &Kind) -> String {
    let parameters = kind.parameters.iter().map(parameter);
    format!("{}\n    {}\n{}", kind.name, kind.meaning, parameters.collect::<String>())
}

fn parameter(parameter: &Parameter) -> String {
    let default = match parameter.kind {
        ParameterType::Whole { least, most, default } => format!("{least} to {most}, {default}"),
        ParameterType::Share { default } => format!("up to 1, {default}"),
        ParameterType::Flag { default } => format!("true or false, {default}"),
        ParameterType::Address => "host:port".to_owned(),
    };
    format!("    {}: {} ({default})\n", parameter.name, parameter.meaning)
}
