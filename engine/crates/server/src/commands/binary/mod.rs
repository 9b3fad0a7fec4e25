//! The binary protocol: dispatch.

mod command;

use std::sync::atomic::Ordering;

use cachemark_protocol::binary::request::{
    Body, HEADER_BYTES, Header, HeaderError, Reply, Status, Verb, big_endian_u32,
};
use cachemark_storage::Mode;

use crate::commands::binary::command::BinaryCommand;
use crate::commands::context::RequestContext;
use crate::commands::observe::{self, Access};
use crate::commands::uploads::{self, Destination};
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::requests::lookahead::{BinaryHead, ParsedRequest};

/// The longest login: mechanism and message together.
const LOGIN_BYTES_MAX: usize = 2048;

/// Carry out the request at the front of `input`, whose header is parsed, and append its reply. `None` if
/// the request is not complete.
pub fn dispatch(
    request: &ParsedRequest<'_, BinaryHead<'_>>,
    input: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    if input.len() < HEADER_BYTES {
        return None;
    }
    let Some(header) = request.parsed.header else {
        return Some(Consumed::all_and_close(input));
    };
    if let Err(error) = header.check() {
        let status = match error {
            HeaderError::Lengths => Status::UnknownCommand,
            HeaderError::Arguments => Status::InvalidArguments,
        };
        return refuse_and_close(&header, status, input, context);
    }
    let login_required = context.state.requires_login();
    let Some(verb) = header.verb().filter(|verb| login_required || !verb.authenticates()) else {
        return refuse_and_swallow(&header, Status::UnknownCommand, connection, context);
    };
    if login_required && !connection.authenticated && !verb.authenticates() && verb != Verb::Version
    {
        return refuse_and_close(&header, Status::NotAuthenticated, input, context);
    }
    if verb.authenticates() && header.body_bytes() > LOGIN_BYTES_MAX {
        return refuse_and_close(&header, Status::InvalidArguments, input, context);
    }
    if verb.stores() && !context.fits(header.item_bytes()) {
        return refuse_too_large(&header, verb, input, connection, context);
    }
    let Some(body) = header.body(input) else {
        return begin_upload(&header, verb, input, connection, context);
    };
    let mut command = BinaryCommand { header, body, lookup: request.lookup, context };
    if verb.authenticates() {
        command.log_in(verb, connection);
    } else {
        carry_out(verb, &mut command);
    }
    let bytes = HEADER_BYTES + header.body_bytes();
    connection.quit = verb == Verb::Quit;
    Some(Consumed { bytes, close: connection.quit, waits: false })
}

/// Begin an upload if the value is long and all before it has arrived.
fn begin_upload(
    header: &Header,
    verb: Verb,
    input: &[u8],
    connection: &mut ConnectionState,
    context: &RequestContext<'_>,
) -> Option<Consumed> {
    if !matches!(verb, Verb::Set | Verb::Add | Verb::Replace) {
        return None;
    }
    let head = HEADER_BYTES + header.body_bytes() - header.value_bytes();
    let Body { extras, key, .. } = header.body_without_value(input.get(..head)?)?;
    let to = Destination {
        key,
        flags: big_endian_u32(&extras[..4]),
        exptime: i64::from(big_endian_u32(&extras[4..8])),
        length: header.value_bytes(),
    };
    uploads::begin(&to, head, input, connection, context)
}

/// Carry out the request of this head, whose value arrived in the memory of its item.
pub fn finish_upload(head: &[u8], context: &mut RequestContext<'_>) {
    let parts = Header::parse(head)
        .and_then(|header| Some((header, header.verb()?, header.body_without_value(head)?)));
    if let Some((header, verb, body)) = parts {
        carry_out(verb, &mut BinaryCommand { header, body, lookup: None, context });
    }
}

fn refuse_and_close(
    header: &Header,
    status: Status,
    input: &[u8],
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    Reply::plain(status).append(header, context.out);
    Some(Consumed::all_and_close(input))
}

/// Refuse a request before its body has arrived.
fn refuse_and_swallow(
    header: &Header,
    status: Status,
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    Reply::plain(status).append(header, context.out);
    connection.swallow = header.body_bytes() as u64;
    Some(Consumed::bytes(HEADER_BYTES))
}

fn refuse_too_large(
    header: &Header,
    verb: Verb,
    input: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    let key = header.key(&input[HEADER_BYTES..])?;
    if verb == Verb::Set {
        context.drop_stale(key);
    }
    context.state.too_large.fetch_add(1, Ordering::Relaxed);
    refuse_and_swallow(header, Status::TooLarge, connection, context)
}

/// Report the lookup of a command to watching clients.
#[cold]
fn report_lookup(verb: Verb, command: &BinaryCommand<'_, '_>) {
    let (key, context) = (command.body.key, &*command.context);
    match verb {
        Verb::Get | Verb::GetAndTouch => observe::looks_up(Access::Get, key, context),
        Verb::Delete => observe::looks_up(Access::Delete, key, context),
        Verb::Touch | Verb::Increment | Verb::Decrement => {
            observe::looks_up(Access::Other, key, context);
        }
        _ if verb.stores() => observe::stores(key, context),
        _ => {}
    }
}

fn carry_out(verb: Verb, command: &mut BinaryCommand<'_, '_>) {
    if observe::lookups_are_observed(command.context) {
        report_lookup(verb, command);
    }
    match verb {
        Verb::Get => command.get(None),
        Verb::GetAndTouch => command.get(Some(command.exptime(0))),
        Verb::Touch => command.touch(),
        Verb::Set => command.store(Mode::Set),
        Verb::Add => command.store(Mode::Add),
        Verb::Replace => command.store(Mode::Replace),
        Verb::Append => command.store(Mode::Append),
        Verb::Prepend => command.store(Mode::Prepend),
        Verb::Delete => command.delete(),
        Verb::Increment => command.arithmetic(true),
        Verb::Decrement => command.arithmetic(false),
        Verb::Flush => command.flush(),
        Verb::Version => command.version(),
        Verb::Noop | Verb::Quit => command.done(0),
        Verb::Stat => command.stat(),
        // `dispatch` carries these out.
        Verb::SaslMechanisms | Verb::SaslAuthenticate | Verb::SaslStep => {}
    }
}
