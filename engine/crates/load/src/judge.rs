//! What an operation is on the wire, and whether its replies are right.

use cachemark_planted::{Bug, planted};
use cachemark_protocol::encode;
use cachemark_protocol::reply::{ErrorKind, Reply, Violation};
use cachemark_tape::{Op, Tape, Verb};

use crate::pending::Pending;
use crate::tally::{Failure, Figures, Tally};

pub(crate) fn write_op(out: &mut Vec<u8>, op: &Op, tape: &Tape) {
    let key = op.key;
    match op.verb {
        Verb::Get => encode::get(out, "get", tape.run(op).map(|k| tape.key(k))),
        Verb::Mget => encode::get(out, "get", tape.run(op).map(|k| tape.key(k))),
        Verb::Gets | Verb::Cas => encode::get(out, "gets", tape.run(op).map(|k| tape.key(k))),
        Verb::Gat => encode::get_and_touch(out, tape.key(key), op.exptime_s),
        Verb::Touch => encode::touch(out, tape.key(key), op.exptime_s, op.noreply),
        Verb::Delete => encode::delete(out, tape.key(key), op.noreply),
        Verb::Version => encode::version(out),
        Verb::Incr | Verb::Decr => {
            encode::count(out, op.verb.name(), tape.key(key), op.length, op.noreply);
        }
        Verb::Set | Verb::Add | Verb::Replace => {
            let value = tape.value(key, op.length);
            encode::store(out, op.verb.name(), tape.key(key), op.exptime_s, value, op.noreply);
        }
        Verb::Mset => {
            for k in tape.run(op) {
                let value = tape.value(k, tape.value_length(k));
                encode::store(out, "set", tape.key(k), op.exptime_s, value, op.noreply);
            }
        }
    }
}

/// Take one reply for an operation; true when the operation is answered whole.
pub(crate) fn answer(
    pending: &mut Pending,
    reply: &Reply<'_>,
    tape: &Tape,
) -> Result<bool, Violation> {
    if let Reply::Error(kind) = reply {
        pending.failure = Some(match kind {
            ErrorKind::Client => Failure::Client,
            ErrorKind::Server => Failure::Server,
        });
        return Ok(end_of_batch(pending));
    }
    match (pending.op.verb, reply) {
        (Verb::Cas, Reply::Value { key, flags, data, cas }) if pending.token.is_none() => {
            take_value(pending, key, *flags, data, tape);
            pending.token = Some(cas.ok_or(Violation)?);
            return Ok(false);
        }
        (Verb::Cas, Reply::End) if !pending.swapping => {
            pending.figures.misses = 1 - pending.figures.hits
        }
        (Verb::Cas, Reply::Stored) if pending.swapping => {}
        (Verb::Cas, Reply::Exists) if pending.swapping => pending.figures.not_stored = 1,
        // Gone between the two.
        (Verb::Cas, Reply::NotFound) if pending.swapping => {
            pending.figures.hits = 0;
            pending.figures.misses = 1;
        }
        (Verb::Incr | Verb::Decr, Reply::Number(_)) => pending.figures.hits = 1,
        (Verb::Incr | Verb::Decr, Reply::NotFound) => pending.figures.misses = 1,
        (
            Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat,
            Reply::Value { key, flags, data, .. },
        ) => {
            take_value(pending, key, *flags, data, tape);
            return Ok(false);
        }
        (Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat, Reply::End) => {
            pending.figures.misses = u32::from(pending.op.run) - pending.figures.hits;
        }
        (Verb::Set, Reply::Stored) => {}
        (Verb::Add | Verb::Replace, Reply::Stored) => {}
        (Verb::Add | Verb::Replace, Reply::NotStored) => pending.figures.not_stored = 1,
        (Verb::Mset, Reply::Stored) => return Ok(end_of_batch(pending)),
        (Verb::Delete, Reply::Deleted) | (Verb::Touch, Reply::Touched) => pending.figures.hits = 1,
        (Verb::Delete | Verb::Touch, Reply::NotFound) => pending.figures.misses = 1,
        (Verb::Version, Reply::Version) => {}
        // `set` refused without an error text: the item could not be stored.
        (Verb::Set, Reply::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Reply::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(end_of_batch(pending));
        }
        _ => return Err(Violation),
    }
    Ok(true)
}

/// A batch of sets has one reply for each; anything else has one in all.
fn end_of_batch(pending: &mut Pending) -> bool {
    pending.passed += 1;
    pending.op.verb != Verb::Mset || pending.passed == pending.op.run
}

/// A VALUE block: it must be the next key of the run that was found, with the tape's bytes.
fn take_value(pending: &mut Pending, key: &[u8], flags: u32, data: &[u8], tape: &Tape) {
    let skip = usize::from(pending.passed);
    let found = tape.run(&pending.op).enumerate().skip(skip).find(|(_, k)| tape.key(*k) == key);
    let Some((position, k)) = found else {
        pending.wrong = true;
        return;
    };
    pending.passed = position as u16 + 1;
    pending.figures.hits += 1;
    pending.figures.value_bytes += data.len() as u64;
    if tape.verifies() && !planted(Bug::UnverifiedValues) {
        let holds = tape.holds_length(data.len() as u64);
        let right = holds && flags == 0 && tape.value(k, data.len() as u32) == data;
        pending.wrong |= !right;
    }
}

pub(crate) fn record(pending: &Pending, now_ns: u64, tape: &Tape, tally: &mut Tally) {
    if pending.barrier {
        return;
    }
    if let Some(failure) = pending.failure {
        tally.failure(&pending.stamps(now_ns), failure);
    } else if pending.wrong {
        tally.wrong(pending.op.verb, pending.op.noreply);
    } else {
        let mut figures = write_figures(&pending.op, tape);
        figures.hits = pending.figures.hits;
        figures.misses = pending.figures.misses;
        figures.not_stored = pending.figures.not_stored;
        if pending.op.verb != Verb::Cas {
            figures.value_bytes += pending.figures.value_bytes;
        } else if figures.hits == 0 {
            figures.value_bytes = 0;
        }
        tally.completed(&pending.stamps(now_ns), &figures);
    }
}

/// What an operation names and writes, known before any reply.
pub(crate) fn write_figures(op: &Op, tape: &Tape) -> Figures {
    let mut figures = Figures { keys: u32::from(op.run), ..Figures::default() };
    for k in tape.run(op) {
        figures.key_bytes += tape.key(k).len() as u64;
        figures.value_bytes += match op.verb {
            Verb::Mset => u64::from(tape.value_length(k)),
            verb if verb.writes() => u64::from(op.length),
            _ => 0,
        };
    }
    figures
}
