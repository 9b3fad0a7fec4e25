//! The verb `stampede`: many callers of one key that expires, with and without memcached's win and stale flags.

mod caller;
mod episodes;
mod played;
mod table;

use std::io;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use cachemark_command::process::{fail, print_error, print_json_document, print_text};
use cachemark_command::units;
use cachemark_load::Address;
use serde::Serialize;

use caller::{Caller, Plan};
use episodes::Episodes;
use played::{Approach, Played};

/// memcached's clock has whole seconds: an item with an expiry of 1 s may be gone at once.
const LEAST_TTL_S: u64 = 2;
/// How much longer than planned an approach may take, before it is given up.
const PATIENCE: u32 = 3;

const EXAMPLES: &str = "\
Example:
  cachemark-engine stampede --server 127.0.0.1:11211 --callers 50 --making 50ms

The key `cachemark-stampede` is stored and read again until it has expired often enough; other keys are not touched.";

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// host:port of a server that has memcached's meta commands (from 1.6 on)
    #[arg(long)]
    server: String,
    /// Callers, each on a connection of its own
    #[arg(long, default_value = "50", value_parser = units::whole)]
    callers: u64,
    /// How long a caller waits between two calls
    #[arg(long, default_value = "10ms", value_parser = units::duration)]
    pause: Duration,
    /// How long a caller takes to make the value, before it stores it again
    #[arg(long, default_value = "50ms", value_parser = units::duration)]
    making: Duration,
    /// The item's expiry, in seconds, at least 2
    #[arg(long, default_value = "3", value_parser = units::whole)]
    ttl: u64,
    /// How often the item expires in each approach
    #[arg(long, default_value = "5", value_parser = units::whole)]
    expiries: u64,
    /// Length of the value
    #[arg(long, default_value = "1000", value_parser = units::whole)]
    size: u64,
    /// Play this approach only
    #[arg(long, value_enum)]
    only: Option<Approach>,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    server: &'a str,
    callers: u64,
    pause_ns: u64,
    making_ns: u64,
    ttl_s: u64,
    approaches: &'a [Played],
}

/// Run the verb. The exit code is 1 if a caller failed, 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let place = match check(&arguments) {
        Ok(place) => place,
        Err(error) => return fail(error),
    };
    let every = [Approach::Plain, Approach::Win, Approach::Stale];
    let chosen = every.into_iter().filter(|one| arguments.only.is_none_or(|only| only == *one));
    let played =
        chosen.map(|approach| play(&arguments, &place, approach)).collect::<Result<Vec<_>, _>>();
    match played {
        Ok(played) => {
            show(&arguments, &played);
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Where the server is. An error says which option has to change.
fn check(arguments: &Arguments) -> Result<Address, String> {
    if !(LEAST_TTL_S..=86_400).contains(&arguments.ttl) {
        return Err(format!("--ttl {}: write 2 to 86400", arguments.ttl));
    }
    if arguments.making >= Duration::from_secs(arguments.ttl - 1) {
        let ttl = arguments.ttl;
        return Err(format!("--making {:?}: too long for --ttl {ttl}", arguments.making));
    }
    if arguments.size > 1_000_000 || arguments.callers.max(arguments.expiries) > 10_000 {
        return Err("--size is at most 1000000, --callers and --expiries at most 10000".to_owned());
    }
    match Address::parse(&arguments.server).map_err(|error| format!("--server {error}"))? {
        Address::Udp(_) => Err(format!("--server {}: write host:port", arguments.server)),
        place => Ok(place),
    }
}

/// Let all callers play one approach until the item has expired often enough.
fn play(arguments: &Arguments, place: &Address, approach: Approach) -> Result<Played, String> {
    let failed = |error: io::Error| format!("--server {}: {error}", arguments.server);
    let each = Duration::from_secs(arguments.ttl) + 2 * arguments.making + arguments.pause;
    let planned = each.saturating_mul(arguments.expiries as u32 + 1);
    let plan = Plan {
        approach,
        pause: arguments.pause,
        making: arguments.making,
        ttl_s: arguments.ttl,
        value: vec![b'v'; arguments.size as usize],
    };
    let mut callers = (0..arguments.callers)
        .map(|_| Caller::connect(place, plan.clone()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(failed)?;
    callers[0].store().map_err(failed)?;
    let give_up = Instant::now() + planned.saturating_mul(PATIENCE) + Duration::from_secs(30);
    let episodes = Arc::new(Episodes::new(arguments.expiries as usize, give_up));
    let together = Arc::new(Barrier::new(callers.len()));
    let threads: Vec<_> = callers
        .into_iter()
        .map(|mut caller| {
            let (episodes, together) = (Arc::clone(&episodes), Arc::clone(&together));
            thread::spawn(move || {
                together.wait();
                // A caller that fails ends the others.
                caller.play(&episodes).inspect_err(|_| episodes.stop())
            })
        })
        .collect();
    let ended = threads.into_iter().map(|thread| thread.join().expect("no panic"));
    ended.collect::<io::Result<Vec<()>>>().map_err(failed)?;
    let summary = episodes.summary();
    if summary.expiries.len() < arguments.expiries as usize {
        return Err(format!(
            "--server {}: the item expired {} times only: does the server honour expiries and the meta flags N and R?",
            arguments.server,
            summary.expiries.len()
        ));
    }
    Ok(Played { approach, summary })
}

fn show(arguments: &Arguments, played: &[Played]) {
    if !arguments.json {
        return print_text(table::render(played, arguments.callers));
    }
    print_json_document(&Document {
        server: &arguments.server,
        callers: arguments.callers,
        pause_ns: arguments.pause.as_nanos() as u64,
        making_ns: arguments.making.as_nanos() as u64,
        ttl_s: arguments.ttl,
        approaches: played,
    });
}
