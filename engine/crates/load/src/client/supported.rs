//! Which tapes and options a client supports. Everything is checked before a connection is opened.

use cachemark_tape::{Op, Tape, Verb};

use super::error::PrepareError;
use super::phase::PhaseLimits;
use crate::options::{Address, ClientOptions, ConnectionOptions, IoBackend, WireName};
use crate::transport::{DATAGRAM_BYTES, HEADER_BYTES};

/// The size of a command without its keys and values.
const COMMAND_BYTES: usize = 64;

/// Whether the protocol has the spellings that are asked for.
pub fn check_wire(options: &ClientOptions) -> Result<(), PrepareError> {
    let ConnectionOptions { wire, trailing_space, .. } = options.connection_options;
    if !trailing_space || wire == WireName::Text {
        return Ok(());
    }
    let reason = format!("trailing_space is for the text protocol, not for {}", wire.name());
    Err(PrepareError::Unsupported(reason))
}

/// Whether the client supports every kind of operation on a tape.
pub fn check_kinds(tape: &Tape, options: &ClientOptions) -> Result<(), PrepareError> {
    let ConnectionOptions { wire, replicas, .. } = options.connection_options;
    let several = options.addresses.len() > 1;
    let can = |op: &Op| match op.verb {
        Verb::Fetch if replicas => false,
        Verb::Flush if several => false,
        verb => wire.supports(verb, op.noreply),
    };
    match (0..tape.op_count()).map(|j| tape.op(j)).find(|op| !can(op)) {
        None => Ok(()),
        Some(op) if op.verb == Verb::Fetch => Err(PrepareError::Unsupported(
            "a fetch fills only one server, so the replicas would differ".to_owned(),
        )),
        Some(op) if op.verb == Verb::Flush => {
            Err(PrepareError::Unsupported("a flush empties only one of several servers".to_owned()))
        }
        Some(op) => {
            let (kind, wire) = (op.verb.kind(op.noreply), wire.name());
            Err(PrepareError::Unsupported(format!("the {wire} protocol has no {kind}")))
        }
    }
}

/// The I/O backend for these options: never `Auto`.
pub(crate) fn io_backend(options: &ClientOptions) -> Result<IoBackend, PrepareError> {
    let ClientOptions { connection_options, addresses, .. } = options;
    if connection_options.io != IoBackend::Uring {
        return Ok(IoBackend::Epoll);
    }
    let none = |what| {
        let reason = format!("io_uring does not support {what}: use epoll or auto");
        Err(PrepareError::Unsupported(reason))
    };
    if addresses.iter().any(|one| matches!(one, Address::Udp(_))) {
        return none("UDP");
    }
    #[cfg(feature = "tls")]
    if connection_options.tls.is_some() {
        return none("TLS");
    }
    connection_options
        .io
        .unsupported_reason()
        .map_or(Ok(IoBackend::Uring), |why| Err(PrepareError::Unsupported(why)))
}

/// Why a tape cannot be played over UDP; `None` if it can. Each request must fit into one datagram and
/// have a reply.
pub fn udp_unsupported(options: &ClientOptions, tape: &Tape) -> Option<String> {
    let ClientOptions { addresses, connection_options, depth, .. } = options;
    let datagrams = addresses.iter().filter(|one| matches!(one, Address::Udp(_))).count();
    let mut ops = (0..tape.op_count()).map(|j| tape.op(j));
    let why = match datagrams {
        0 => return None,
        _ if datagrams < addresses.len() => "use UDP for all servers or for none",
        _ if *depth > 1 => "UDP has one request at a time on each connection: use depth 1",
        _ if connection_options.wire != WireName::Text => "UDP supports only the text protocol",
        _ if connection_options.reconnect_after.is_some() => {
            "UDP has no connections that could be opened again: leave reconnect_after out"
        }
        _ if is_encrypted(connection_options) => "UDP does not support TLS",
        _ if ops.any(|op| op.noreply || !fits_datagram(&op, tape)) => {
            "a request over UDP must have one key and a reply, and fit into a datagram of 1400 bytes"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// The same for a phase: the prefill also stores keys that no operation of the tape stores.
pub fn udp_phase_unsupported(
    limits: PhaseLimits,
    options: &ClientOptions,
    tape: &Tape,
) -> Option<String> {
    let PhaseLimits::Prefill = limits else { return None };
    let Address::Udp(_) = options.addresses[0] else { return None };
    let bytes = |k: u32| tape.key(k).len() + tape.value_length(k) as usize;
    let longest = (0..tape.prefill_count()).map(bytes).max()?;
    (longest + COMMAND_BYTES > DATAGRAM_BYTES - HEADER_BYTES).then(|| {
        format!(
            "a key and value of {longest} bytes do not fit into a datagram: store them over TCP"
        )
    })
}

#[cfg(feature = "tls")]
fn is_encrypted(connection_options: &ConnectionOptions) -> bool {
    connection_options.tls.is_some()
}

#[cfg(not(feature = "tls"))]
fn is_encrypted(_: &ConnectionOptions) -> bool {
    false
}

/// Whether the request is one datagram and the reply is one value. memcached numbers the datagrams of
/// each value from 0, so the order of several values is unknown.
fn fits_datagram(op: &Op, tape: &Tape) -> bool {
    let key: usize = tape.run(op).map(|k| tape.key(k).len()).sum();
    let value = if op.verb.writes() { op.length as usize } else { 0 };
    !op.verb.has_run() && key + value + COMMAND_BYTES <= DATAGRAM_BYTES - HEADER_BYTES
}
