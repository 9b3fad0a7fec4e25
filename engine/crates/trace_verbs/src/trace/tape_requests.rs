//! The requests of a tape, which is a trace that was made from numbers.

use std::fs::File;
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;

use cachemark_miss_ratio::{Operation, Request};
use cachemark_tape::{Op, Tape, Verb};
use cachemark_trace::ReadTrace;
use cachemark_trace::file::{Keys, Origin, Summary};
use foldhash::quality::FixedState;

pub(super) const FORMAT: &str = "tape";
const BEGINS: &[u8] = b"CMTAPE";

/// Whether the file is a tape. A file that cannot be read is none.
pub(super) fn is_tape(path: &Path) -> bool {
    let mut begins = [0; BEGINS.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut begins)).is_ok() && begins == BEGINS
}

/// Call `each` with every request, its key and its time in ns, which is 0 in a closed loop. A read that misses is
/// followed by a fill: it is unknown whether the item was there before. An error names the file.
pub(super) fn each_request(
    path: &Path,
    mut each: impl FnMut(&Request, &[u8], u64),
) -> Result<ReadTrace, String> {
    let tape = Tape::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let hash = FixedState::default();
    for place in 0..tape.op_count() {
        let op = tape.op(place);
        let Some((operation, succeeded)) = seen_as(&op) else { continue };
        let at_ns = if tape.is_open_loop() { tape.due_ns(place) } else { 0 };
        let mut one = |k: u32| {
            let request = Request {
                hash: hash.hash_one(k),
                at_s: (at_ns / 1_000_000_000) as u32,
                ttl_s: op.exptime_s,
                value_bytes: tape.value_length(k),
                key_bytes: tape.key_length(k) as u8,
                operation,
                succeeded,
            };
            each(&request, tape.key(k), at_ns);
        };
        if op.verb.has_run() { tape.run(&op).for_each(one) } else { one(op.key) }
    }
    let origin = Origin { source: FORMAT.to_owned(), keys: Keys::Plain, sampled: 1 };
    let summary = Summary { records: tape.op_count(), ..Summary::default() };
    Ok(ReadTrace { format: FORMAT, origin, summary })
}

/// `None`: no cache sees it.
fn seen_as(op: &Op) -> Option<(Operation, Option<bool>)> {
    Some(match op.verb {
        verb if verb.is_keyless() => return None,
        Verb::Fetch | Verb::Get | Verb::Mget => (Operation::Get, Some(true)),
        Verb::Set | Verb::Mset => (Operation::Update, Some(true)),
        Verb::Add => (Operation::Add, None),
        Verb::Replace => (Operation::Replace, None),
        Verb::Delete => (Operation::Delete, None),
        _ => (Operation::Touch, None),
    })
}
