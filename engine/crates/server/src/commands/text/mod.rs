//! The text protocol: dispatches the classic commands, and the meta commands too.

mod control;
mod dump;
mod get;
mod http;
mod login;
mod reply;
mod simple;
mod storage;
mod watch;

use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};

use crate::commands::context::RequestContext;
use crate::commands::meta;
use crate::commands::meta::flag_cache::FlagCache;
use crate::commands::observe::{self, Access};
use crate::commands::text::control::Outcome;
use crate::commands::text::get::Get;
use crate::commands::text::reply::reply;
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::requests::lookahead::ParsedRequest;
use crate::state::stats;

/// Carry out the request at the front of `rest` and append its reply. `None` if the request is not complete.
/// A get or a dump stops at `pause_at` bytes of output; then it consumes nothing and is resumed later.
#[inline]
pub fn dispatch<'a>(
    request: &ParsedRequest<'a, Parsed<'a>>,
    flags: &mut FlagCache<'a>,
    rest: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
    pause_at: usize,
) -> Option<Consumed> {
    if context.state.requires_login() && !connection.authenticated {
        return login::log_in(rest, connection, context);
    }
    let (command, line) = match request.parsed {
        Parsed::Incomplete => return None,
        Parsed::TooLong => return Some(Consumed::all_and_close(rest)),
        Parsed::Refused(_, line) if http::speaks(&rest[..line]) => {
            return Some(Consumed::all_and_close(rest));
        }
        Parsed::Refused(refusal, line) => {
            context.out.extend_from_slice(refusal.reply());
            connection.swallow = refusal.swallow();
            return Some(Consumed::bytes(line));
        }
        Parsed::Command(command, line) => (command, line),
    };
    let lookup = request.lookup;
    if observe::lookups_are_observed(context) && connection.resume_at == 0 {
        report_lookups(&command, context);
    }
    let resume_at = &mut connection.resume_at;
    match command {
        Command::Get { keys, cas } => match keys.only() {
            Some(key) if !cas => {
                get::one(&context.state.store.lookup(key, lookup), context);
                context.sent_at_once = context.out.len();
            }
            _ => {
                let get = Get { keys, lookup, exptime: None, cas };
                return taken_if(get.answer(resume_at, context, pause_at), line);
            }
        },
        Command::GetAndTouch { keys, exptime, cas } => {
            let get = Get { keys, lookup, exptime: Some(exptime), cas };
            return taken_if(get.answer(resume_at, context, pause_at), line);
        }
        Command::Control { verb, words, noreply } => {
            return match control::carry_out(verb, words, context) {
                Outcome::Reply(text) => {
                    reply(context.out, noreply, text);
                    Some(Consumed::bytes(line))
                }
                Outcome::Dump(dump) => {
                    taken_if(dump::write(dump, resume_at, context, pause_at), line)
                }
                Outcome::Close => Some(Consumed { bytes: line, close: true, waits: false }),
            };
        }
        Command::Watch { kinds } => return Some(watch::start(kinds, line, connection, context)),
        Command::Meta(request) if request.verb == MetaVerb::Set => {
            return meta::store(&request, flags, line, rest, connection, context);
        }
        Command::Meta(request) => meta::answer(&request, flags, lookup, context),
        Command::Store(store) => {
            return storage::store(&store, line, rest, connection, context);
        }
        Command::Quit => {
            connection.quit = true;
            return Some(Consumed { bytes: line, close: true, waits: false });
        }
        Command::Delete { key, noreply } => simple::delete(key, noreply, context),
        Command::Arithmetic { key, delta, increment, noreply } => {
            simple::arithmetic(key, delta, increment, noreply, context)
        }
        Command::Touch { key, exptime, noreply } => simple::touch(key, exptime, noreply, context),
        Command::FlushAll { delay, noreply } => simple::flush_all(delay, noreply, context),
        Command::Version => simple::version(context),
        Command::Stats { topic } => {
            stats::write(topic, context.state, context.socket, context.out);
            // `stats detail` may have changed it.
            context.watched = context.state.log.wanted();
        }
        Command::MetaNoop => {
            context.out.extend_from_slice(b"MN\r\n");
            context.sent_at_once = context.out.len();
        }
    }
    Some(Consumed::bytes(line))
}

/// Carry out the storage command of this line, whose value arrived in the memory of its item.
pub fn finish_upload(line: &[u8], end: &[u8], context: &mut RequestContext<'_>) {
    match parse(line) {
        Parsed::Command(Command::Store(store), _) => storage::finish(&store, b"", end, context),
        Parsed::Command(Command::Meta(request), _) => meta::finish_upload(&request, end, context),
        // Only these begin an upload.
        _ => {}
    }
}

/// A command takes its line once it is answered completely, and nothing before.
fn taken_if(complete: bool, line: usize) -> Option<Consumed> {
    Some(Consumed::bytes(if complete { line } else { 0 }))
}

/// Report the lookups of a classic command. Storage commands do so themselves, once their data is complete.
#[cold]
fn report_lookups(command: &Command<'_>, context: &RequestContext<'_>) {
    match *command {
        Command::Get { keys, .. } | Command::GetAndTouch { keys, .. } => {
            keys.for_each(|key| observe::looks_up(Access::Get, key, context));
        }
        Command::Delete { key, .. } => observe::looks_up(Access::Delete, key, context),
        Command::Arithmetic { key, .. } | Command::Touch { key, .. } => {
            observe::looks_up(Access::Other, key, context);
        }
        _ => {}
    }
}
