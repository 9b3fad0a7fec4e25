//! The meta commands: dispatch.

mod arithmetic;
mod command;
mod delete;
pub mod flag_cache;
mod get;
pub mod reply;
mod set;

use std::sync::atomic::Ordering;

use cachemark_protocol::limits::KEY_BYTES_MAX;
use cachemark_protocol::meta::request::{
    MetaError, MetaMode, MetaOptions, MetaRequest, MetaVerb, decode_key,
};
use cachemark_storage::Lookup;

use crate::commands::context::RequestContext;
use crate::commands::meta::command::MetaCommand;
use crate::commands::meta::flag_cache::FlagCache;
use crate::commands::observe::{self, Access};
use crate::commands::uploads::{self, Destination};
use crate::requests::connection_state::{ConnectionState, Consumed};

/// Parse the flags of a command without data and carry it out.
#[inline]
pub fn answer<'a>(
    request: &MetaRequest<'a>,
    flags: &mut FlagCache<'a>,
    lookup: Option<Lookup<'_>>,
    context: &mut RequestContext<'_>,
) {
    match flags.options_of(request) {
        Ok(options) => carry_out(request, options, lookup, b"", context),
        Err(error) => context.out.extend_from_slice(error.reply(request.verb)),
    }
}

/// Parse the flags of an `ms` whose line has this length and whose data follows it, and carry it out. `None`
/// if the data is not complete. Wrong flags and too large an item are refused before the data arrives.
pub fn store<'a>(
    request: &MetaRequest<'a>,
    flags: &mut FlagCache<'a>,
    line: usize,
    rest: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    let options = match check_store(request, flags, context) {
        Ok(options) => options,
        Err(reply) => {
            context.out.extend_from_slice(reply);
            connection.swallow = request.length + 2;
            return Some(Consumed::bytes(line));
        }
    };
    let length = request.length as usize;
    let Some(data) = rest.get(line..line + length + 2) else {
        return begin_upload(request, options, line, rest, connection, context);
    };
    let (value, end) = data.split_at(length);
    match end {
        b"\r\n" => carry_out(request, options, None, value, context),
        _ => context.out.extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n"),
    }
    Some(Consumed::bytes(line + data.len()))
}

/// Begin an upload if the value is long and the item depends on the command alone.
fn begin_upload(
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
    line: usize,
    rest: &[u8],
    connection: &mut ConnectionState,
    context: &RequestContext<'_>,
) -> Option<Consumed> {
    let joins = matches!(options.mode, MetaMode::Append | MetaMode::Prepend);
    if joins || options.base64 || options.new_cas.is_some() || options.expected_cas.is_some() {
        return None;
    }
    let to = Destination {
        key: request.key,
        flags: options.client_flags,
        exptime: options.exptime.unwrap_or(0),
        length: request.length as usize,
    };
    uploads::begin(&to, line, rest, connection, context)
}

/// Carry out an `ms` whose value arrived in the memory of its item.
pub fn finish_upload(request: &MetaRequest<'_>, end: &[u8], context: &mut RequestContext<'_>) {
    match (end, request.options()) {
        (b"\r\n", Ok(options)) => carry_out(request, &options, None, b"", context),
        _ => context.out.extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n"),
    }
}

/// The options of an `ms`, or the reply that refuses it.
fn check_store<'a, 'b>(
    request: &MetaRequest<'a>,
    flags: &'b mut FlagCache<'a>,
    context: &RequestContext<'_>,
) -> Result<&'b MetaOptions<'a>, &'static [u8]> {
    let refused = |error: MetaError| error.reply(request.verb);
    let options = flags.options_of(request).map_err(refused)?;
    let too_large = if options.base64 {
        let mut buffer = [0; KEY_BYTES_MAX];
        let key = decode_key(request.key, &mut buffer).map_err(refused)?;
        too_large(key, request.length, context)
    } else {
        too_large(request.key, request.length, context)
    };
    too_large.map_or(Ok(options), Err)
}

fn too_large(key: &[u8], length: u64, context: &RequestContext<'_>) -> Option<&'static [u8]> {
    if context.fits(key.len() as u64 + length) {
        return None;
    }
    context.state.too_large.fetch_add(1, Ordering::Relaxed);
    context.drop_stale(key);
    Some(b"SERVER_ERROR object too large for cache\r\n")
}

/// Carry out a command. `lookup` is its key's if that was prefetched, `value` the data of an `ms`.
#[inline]
fn carry_out(
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
    lookup: Option<Lookup<'_>>,
    value: &[u8],
    context: &mut RequestContext<'_>,
) {
    if options.base64 {
        return carry_out_base64(request, options, value, context);
    }
    let key = request.key;
    dispatch(&mut MetaCommand { request, options, key, lookup, context }, value);
}

/// The same with a key in base64. Only these commands pay for the buffer of the decoded key.
fn carry_out_base64(
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
    value: &[u8],
    context: &mut RequestContext<'_>,
) {
    let mut buffer = [0; KEY_BYTES_MAX];
    match decode_key(request.key, &mut buffer) {
        Ok(key) => {
            dispatch(&mut MetaCommand { request, options, key, lookup: None, context }, value);
        }
        Err(error) => context.out.extend_from_slice(error.reply(request.verb)),
    }
}

fn dispatch(command: &mut MetaCommand<'_, '_>, value: &[u8]) {
    if observe::lookups_are_observed(command.context) {
        report_lookup(command);
    }
    match command.request.verb {
        MetaVerb::Get => command.get(),
        MetaVerb::Set => command.set(value),
        MetaVerb::Delete => command.delete(),
        MetaVerb::Arithmetic => command.arithmetic(),
        MetaVerb::Debug => command.debug(),
    }
}

#[cold]
fn report_lookup(command: &MetaCommand<'_, '_>) {
    observe::looks_up(Access::Other, command.key, command.context);
}
