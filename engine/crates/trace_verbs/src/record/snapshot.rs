//! The items of a memcached, by its `lru_crawler metadump hash`, which walks the table of items: each item about once.
//! `metadump all` walks its lists, and misses items that are just read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cachemark_trace::{Conversion, Converted, Snapshot, convert_requests};

use super::arguments::{Arguments, written};
use super::control::{Control, open};

const COMMAND: &str = "lru_crawler metadump hash";
/// The numbers of the server that a snapshot keeps.
const NUMBERS: [&str; 6] =
    ["curr_items", "limit_maxbytes", "uptime", "get_hits", "get_misses", "evictions"];
/// A key has 250 bytes at most, and each three letters.
const MOST_LINE_BYTES: u64 = 2000;
/// The crawler does one thing at a time, such as looking for expired items.
const ATTEMPTS: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(500);

/// Record what the server holds. An error names the server or the trace.
pub fn record(arguments: &Arguments, ends: &AtomicBool) -> Result<Converted, String> {
    let server = &arguments.source;
    let place = |error: String| format!("{server}: {error}");
    let mut control = Control::connect(server).map_err(place)?;
    let stats = control.stats().map_err(place)?;
    let number = |name: &str| stats.get(name).and_then(|text| text.parse::<u64>().ok());
    let now_s =
        number("time").ok_or("its `stats` have no time").map_err(|e| place(e.to_owned()))?;
    let numbers: BTreeMap<String, u64> =
        NUMBERS.iter().filter_map(|name| Some(((*name).to_owned(), number(name)?))).collect();
    let mut snapshot = Snapshot::new(now_s, arguments.sample, numbers);
    for attempt in 1.. {
        match dump(server, &mut snapshot, ends).map_err(place)? {
            Dump::Whole => break,
            Dump::Busy if attempt < ATTEMPTS => thread::sleep(BUSY_WAIT),
            Dump::Busy => {
                return Err(place(format!("its crawler is busy: it refused `{COMMAND}`")));
            }
        }
    }
    snapshot.finish();
    let source = Some(format!("metadump of {}", control.version()));
    let conversion = Conversion { source, ..arguments.conversion() };
    written(&arguments.out, |into| {
        convert_requests(&mut snapshot, "metadump", &conversion, into).map_err(place)
    })
}

enum Dump {
    Whole,
    Busy,
}

/// Read all lines of one dump.
fn dump(server: &str, into: &mut Snapshot, ends: &AtomicBool) -> Result<Dump, String> {
    let no_answer = |error: std::io::Error| format!("no answer to `{COMMAND}`: {error}");
    let mut from = BufReader::new(open(server)?);
    from.get_mut().write_all(format!("{COMMAND}\r\n").as_bytes()).map_err(no_answer)?;
    let (mut line, mut is_first) = (Vec::new(), true);
    loop {
        line.clear();
        (&mut from).take(MOST_LINE_BYTES).read_until(b'\n', &mut line).map_err(no_answer)?;
        if !line.ends_with(b"\n") {
            return Err(format!("its answer to `{COMMAND}` has no end"));
        }
        let text = String::from_utf8_lossy(&line);
        match text.trim_end() {
            "END" => return Ok(Dump::Whole),
            busy if busy.starts_with("BUSY") => return Ok(Dump::Busy),
            refused if is_first && !refused.starts_with("key=") => {
                return Err(format!(
                    "it answers {refused:?} to `{COMMAND}`: only memcached has it, and not with -X or `-o \
                     no_lru_crawler`"
                ));
            }
            item => into.add(item),
        }
        is_first = false;
        if ends.load(Ordering::Relaxed) {
            return Err("interrupted: a part of the items is no snapshot".to_owned());
        }
    }
}
