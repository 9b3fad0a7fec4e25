//! The verb `distance`: a proxy that holds bytes as long as a network would.

mod floor;

use std::io::{self, BufRead};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use cachemark_command::process::{StopSignals, fail, print_error, print_json_line};
use cachemark_command::units;
use cachemark_fault_proxy::distance::{Distance, HeldSummary, SharedAccount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;

const SHORTEST: Duration = Duration::from_micros(1);
const LONGEST: Duration = Duration::from_secs(10);

const STDIN: &str = "\
Each line on stdin is answered with a line of JSON: how long bytes were held so far. The end of stdin ends the proxy.";

#[derive(clap::Args)]
#[command(after_help = STDIN)]
pub struct Arguments {
    /// The time that the way there and back takes, such as 500us or 0.5ms
    #[arg(long, value_parser = units::duration)]
    round_trip: Duration,
    /// host:port of the server behind it; repeated, each server has an address of its own
    #[arg(long, required = true)]
    upstream: Vec<String>,
    /// The IP address to listen on; the system chooses the ports
    #[arg(long, default_value = "127.0.0.1")]
    listen: IpAddr,
}

#[derive(Serialize)]
struct Listening {
    /// In the order of the servers.
    listening: Vec<SocketAddr>,
    round_trip_ns: u64,
    /// The time that the proxy adds to a round trip without any distance, here and now.
    floor_ns: u64,
}

#[derive(Serialize)]
struct Told {
    connections: u64,
    refused: u64,
    /// To the servers, and back.
    held: [HeldSummary; 2],
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    // Before the threads start, so that no signal is missed.
    let signals = StopSignals::catch();
    match signals.and_then(|signals| Ok((signals, listen(&arguments)?))) {
        Ok((signals, account)) => {
            thread::spawn(move || {
                end_with(tell(&account));
            });
            signals.wait(false);
            ExitCode::SUCCESS
        }
        Err(error) => fail(error),
    }
}

/// End the program from another thread.
fn end_with(result: Result<(), String>) -> ! {
    if let Err(error) = &result {
        print_error(error);
    }
    std::process::exit(result.is_err().into());
}

fn listen(arguments: &Arguments) -> Result<SharedAccount, String> {
    if !(SHORTEST..=LONGEST).contains(&arguments.round_trip) {
        return Err(format!("--round-trip {:?}: write 1us to 10s", arguments.round_trip));
    }
    let servers =
        arguments.upstream.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
    allow_open_files().map_err(|error| format!("open files: {error}"))?;
    let floor = floor::own_delay().map_err(|error| format!("its own delay: {error}"))?;
    let mut distance = Distance::listen(arguments.listen, &servers, arguments.round_trip)
        .map_err(|error| format!("--listen {}: {error}", arguments.listen))?;
    let account = distance.account();
    print_json_line(&Listening {
        listening: distance.addresses(),
        round_trip_ns: arguments.round_trip.as_nanos() as u64,
        floor_ns: floor.as_nanos() as u64,
    })?;
    thread::spawn(move || {
        end_with(distance.run(&AtomicBool::new(false)).map_err(|error| error.to_string()));
    });
    Ok(account)
}

/// A connection takes two files.
fn allow_open_files() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?)
}

/// Answer each line of stdin until it ends.
fn tell(account: &SharedAccount) -> Result<(), String> {
    for line in io::stdin().lock().split(b'\n') {
        line.map_err(|error| format!("stdin: {error}"))?;
        let told = {
            let account = account.lock();
            let (connections, refused) = (account.connections, account.refused);
            Told { connections, refused, held: account.held() }
        };
        print_json_line(&told)?;
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found =
        text.to_socket_addrs().map_err(|error| format!("--upstream {text}: {error}"))?;
    found.next().ok_or_else(|| format!("--upstream {text}: no such host"))
}
