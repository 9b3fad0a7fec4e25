//! Checks the replies against the tape. It is the same for every protocol.

use cachemark_injected_bugs::{Bug, injected};
use cachemark_protocol::reply_errors::{ErrorKind, Violation};

use crate::operation::{Failure, Pending};
use crate::record::remember_wrong_value;
use crate::routing::TapeView;

pub(crate) fn failure_of(kind: ErrorKind) -> Failure {
    match kind {
        ErrorKind::Client => Failure::Client,
        ErrorKind::Server => Failure::Server,
    }
}

/// Check a value that comes with its key: the key must be the operation's, or a later one of its run. Any other
/// key is a violation, because then this reply belongs to another operation, and so may all replies behind it.
#[inline]
pub(crate) fn verify_keyed_value(
    pending: &mut Pending,
    key: &[u8],
    flags: u32,
    data: &[u8],
    view: TapeView<'_>,
) -> Result<(), Violation> {
    let op = pending.op;
    if !op.verb.has_run() {
        if pending.keys_answered > 0 || view.key(op.key) != key {
            return Err(Violation);
        }
        pending.keys_answered = 1;
        verify_value(pending, op.key, flags, data, view);
        return Ok(());
    }
    let mut left = pending.keys_answered..op.run;
    let at = left.find(|at| view.key(view.key_at(&op, *at)) == key).ok_or(Violation)?;
    pending.keys_answered = at + 1;
    verify_value(pending, view.key_at(&op, at), flags, data, view);
    Ok(())
}

/// Check and count a value.
#[inline]
pub(crate) fn verify_value(
    pending: &mut Pending,
    k: u32,
    flags: u32,
    data: &[u8],
    view: TapeView<'_>,
) {
    pending.counts.hits += 1;
    pending.counts.value_bytes += data.len() as u64;
    // The record of a run tells the generation of its first key.
    let told = pending.op.generation;
    let others = told > 0 && pending.op.verb.has_run() && k != view.key_at(&pending.op, 0);
    let generation = if others { 0 } else { told };
    if !is_right(k, generation, flags, data, view) {
        pending.wrong = true;
        remember_wrong_value(data);
    }
}

/// Whether a value equals the tape's, byte by byte, and its generation is one that the read may bring. If values are
/// not checked, every one is right.
#[inline(always)]
pub(crate) fn is_right(
    k: u32,
    generation: u8,
    flags: u32,
    data: &[u8],
    view: TapeView<'_>,
) -> bool {
    if !view.verifies_values() || injected(Bug::UnverifiedValues) {
        return true;
    }
    let holds = view.pool_covers(data.len() as u64);
    let is = || view.value_of(k, data.len() as u32, generation) == data;
    holds && flags == 0 && (is() || view.allows(k, data, generation))
}

/// Keep the CAS token of the value for the second command.
pub(crate) fn keep_cas_token(pending: &mut Pending, token: u64) {
    pending.token = Some(token);
}
