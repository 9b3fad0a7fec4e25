//! The options of memcached's command line, as a table: their names, what the help says, and what they change.

use cachemark_server::Protocol;

use crate::memcached::configuration::{Configuration, Ending, FAILURE, USAGE, failed};
use crate::memcached::extended;
use crate::memcached::numbers::{decimal, integer, size};

/// The change that an option makes to the configuration.
pub enum Action {
    Flag(fn(&mut Configuration)),
    Argument(&'static str, fn(&str, &mut Configuration) -> Result<(), Ending>),
    /// Prints and ends.
    Help,
    License,
    Version,
}

pub struct CommandOption {
    pub short: char,
    /// Without the dashes; empty if there is none.
    pub long: &'static str,
    pub help: &'static str,
    pub action: Action,
}

const fn option(
    short: char,
    long: &'static str,
    help: &'static str,
    action: Action,
) -> CommandOption {
    CommandOption { short, long, help, action }
}

use Action::{Argument, Flag};

/// All options, in the order of the help.
pub static OPTIONS: [CommandOption; 37] = [
    option(
        'p',
        "port",
        "TCP port, 0 for none, -1 for any (default: 11211)",
        Argument("num", |text, to| {
            (to.port, to.port_given) = (integer(text), true);
            Ok(())
        }),
    ),
    option(
        'U',
        "udp-port",
        "UDP port (default: 0, off)",
        Argument("num", |text, to| {
            (to.udp_port, to.udp_port_given) = (integer(text), true);
            Ok(())
        }),
    ),
    option(
        's',
        "unix-socket",
        "Unix socket to listen on, in place of the network",
        Argument("file", |text, to| {
            to.unix = Some(text.into());
            Ok(())
        }),
    ),
    option(
        'a',
        "unix-mask",
        "permissions of the Unix socket, in octal (default: 700)",
        Argument("mask", unix_mask),
    ),
    option(
        'A',
        "enable-shutdown",
        "allow the command \"shutdown\"",
        Flag(|to| to.commands.shutdown = true),
    ),
    option(
        'l',
        "listen",
        "addresses to listen on, with commas between (default: all)",
        Argument("addr", interfaces),
    ),
    option('d', "daemon", "run as a daemon", Flag(|to| to.daemon = true)),
    option(
        'r',
        "enable-coredumps",
        "allow core dumps of any size",
        Flag(|to| to.dumps_core = true),
    ),
    option(
        'u',
        "user",
        "the user to become, when started by root",
        Argument("user", |text, to| {
            to.user = Some(text.to_owned());
            Ok(())
        }),
    ),
    option(
        'm',
        "memory-limit",
        "memory for items in megabytes (default: 64)",
        Argument("num", |text, to| {
            to.memory_mebibytes = integer(text);
            Ok(())
        }),
    ),
    option(
        'M',
        "disable-evictions",
        "refuse new items when the memory is full",
        Flag(|to| to.evicts = false),
    ),
    option(
        'c',
        "conn-limit",
        "the most simultaneous connections (default: 1024)",
        Argument("num", connections),
    ),
    option('k', "lock-memory", "lock all memory", Flag(|to| to.locks_memory = true)),
    option(
        'v',
        "verbose",
        "for \"stats settings\" only; may be repeated",
        Flag(|to| to.tuning.verbosity += 1),
    ),
    option('h', "help", "print this help and exit", Action::Help),
    option('i', "license", "print the license and exit", Action::License),
    option('V', "version", "print the version and exit", Action::Version),
    option(
        'P',
        "pidfile",
        "file for the process's number",
        Argument("file", |text, to| {
            to.pid_file = Some(text.into());
            Ok(())
        }),
    ),
    option(
        'f',
        "slab-growth-factor",
        "ratio between the sizes by which \"stats items\" counts (default: 1.25)",
        Argument("num", growth_factor),
    ),
    option(
        'n',
        "slab-min-size",
        "room for key and value in the first of these sizes (default: 48)",
        Argument("bytes", chunk_size),
    ),
    option(
        'L',
        "enable-largepages",
        "let the system use huge pages for items",
        Flag(|to| to.huge_pages = true),
    ),
    option(
        'D',
        "",
        "end of a key's prefix, for \"stats detail\" (default: \":\")",
        Argument("char", delimiter),
    ),
    option('t', "threads", "number of event loops (default: 4)", Argument("num", threads)),
    option(
        'R',
        "max-reqs-per-event",
        "requests of one connection before others come first (default: until replies are long)",
        Argument("num", requests_per_event),
    ),
    option(
        'C',
        "disable-cas",
        "let all cas numbers be 0, so that no comparison succeeds",
        Flag(|to| to.tuning.cas = false),
    ),
    option(
        'b',
        "listen-backlog",
        "how many clients may wait until they are accepted (default: 1024)",
        Argument("num", |text, to| {
            to.backlog = integer(text).clamp(0, i64::from(i32::MAX)) as i32;
            Ok(())
        }),
    ),
    option('B', "protocol", "ascii, binary or auto (default: auto)", Argument("name", protocol)),
    option(
        'I',
        "max-item-size",
        "the largest item (default: 1m, least: 1k, most: 1024m)",
        Argument("num", |text, to| {
            to.item_bytes = size(text);
            Ok(())
        }),
    ),
    option(
        'S',
        "enable-sasl",
        "login by SASL (PLAIN or CRAM-MD5); users are in the file MEMCACHED_SASL_PWDB",
        Flag(|to| to.sasl = true),
    ),
    option(
        'F',
        "disable-flush-all",
        "refuse the command \"flush_all\"",
        Flag(|to| to.commands.flush = false),
    ),
    option(
        'X',
        "disable-dumping",
        "refuse cachedump, detail and metadump",
        Flag(|to| to.commands.dump = false),
    ),
    option(
        'W',
        "disable-watch",
        "refuse the command \"watch\"",
        Flag(|to| to.commands.watch = false),
    ),
    option(
        'Y',
        "auth-file",
        "login by the text protocol; lines of user:password",
        Argument("file", |text, to| {
            to.auth_file = Some(text.into());
            Ok(())
        }),
    ),
    option(
        'e',
        "memory-file",
        "file for the items, which stay there over a graceful restart (SIGUSR1)",
        Argument("file", |text, to| {
            // A daemon has another working directory.
            let path = std::path::absolute(text);
            to.tuning.memory_file =
                Some(path.map_err(|error| failed(FAILURE, format!("-e: {error}")))?);
            Ok(())
        }),
    ),
    option('Z', "enable-ssl", "use TLS", Flag(|to| to.tls = true)),
    option(
        'o',
        "extended",
        "further options, with commas between:",
        Argument("list", extended::apply),
    ),
    option(
        'N',
        "napi-ids",
        "refused: event loops take connections in turn",
        Argument("num", |_, _| {
            Err(failed(FAILURE, "-N: event loops take connections in turn here; leave -N out"))
        }),
    ),
];

fn unix_mask(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    let digits: String = text.chars().take_while(|digit| digit.is_digit(8)).collect();
    to.unix_mode = u32::from_str_radix(&digits, 8).unwrap_or(0) & 0o777;
    Ok(())
}

fn interfaces(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    let interfaces = to.interfaces.get_or_insert_default();
    for interface in text.split([',', ';']).filter(|interface| !interface.is_empty()) {
        if !interfaces.iter().any(|known| known == interface) {
            interfaces.push(interface.to_owned());
        }
    }
    Ok(())
}

/// A number that must be greater than 0.
fn positive(text: &str, what: &str) -> Result<u32, Ending> {
    u32::try_from(integer(text))
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| failed(FAILURE, format!("{what} must be greater than 0")))
}

fn connections(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.connections = positive(text, "Maximum connections")?.into();
    Ok(())
}

fn growth_factor(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.tuning.growth_factor = decimal(text);
    if to.tuning.growth_factor > 1.0 {
        return Ok(());
    }
    Err(failed(FAILURE, "Factor must be greater than 1"))
}

fn chunk_size(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.tuning.chunk_size = positive(text, "Chunk size")?;
    Ok(())
}

fn delimiter(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    let first = text.bytes().next().ok_or_else(|| failed(FAILURE, "No delimiter specified"))?;
    (to.prefix_delimiter, to.counts_prefixes) = (first, true);
    Ok(())
}

/// More event loops do not help on any machine.
const THREADS_MAX: u32 = 1024;

fn threads(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.threads = positive(text, "Number of threads")?.min(THREADS_MAX) as usize;
    Ok(())
}

fn requests_per_event(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.requests_per_event = Some(positive(text, "Number of requests per event")?);
    Ok(())
}

fn protocol(text: &str, to: &mut Configuration) -> Result<(), Ending> {
    to.protocol = Some(match text {
        "auto" => Protocol::Any,
        "binary" => Protocol::Binary,
        "ascii" => Protocol::Text,
        _ => {
            let message = format!(
                "Invalid value for binding protocol: {text}\n \
                 -- should be one of auto, binary, or ascii"
            );
            return Err(failed(USAGE, message));
        }
    });
    Ok(())
}
