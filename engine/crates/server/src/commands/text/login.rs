//! The login of a text connection: the first storage command carries user and password as its data. Every
//! other command is refused before.

use cachemark_protocol::text::command::{Command, StoreVerb};
use cachemark_protocol::text::request::{Parsed, parse};

use crate::commands::context::RequestContext;
use crate::commands::text::http;
use crate::requests::connection_state::{ConnectionState, Consumed};

/// Longer data is no user and password.
const TOKEN_BYTES_MAX: u64 = 16384;
/// A shorter line, with its carriage return, cannot be a login: memcached ends the connection.
const LINE_BYTES_MIN: usize = 6;

/// Carry out the command at the front of `input` and append its reply. `None` if it is not complete.
pub fn log_in(
    input: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    let short = &input[..input.len().min(LINE_BYTES_MIN)];
    if short.contains(&b'\n') {
        return Some(Consumed::all_and_close(input));
    }
    let (line, length) = match parse(input) {
        Parsed::Incomplete => return None,
        Parsed::TooLong => return Some(Consumed::all_and_close(input)),
        Parsed::Command(Command::Store(store), line)
            if store.verb == StoreVerb::Set && store.length <= TOKEN_BYTES_MAX =>
        {
            (line, store.length as usize)
        }
        Parsed::Command(Command::Store(store), line) if store.verb == StoreVerb::Set => {
            context.out.extend_from_slice(b"CLIENT_ERROR auth token too long\r\n");
            return Some(Consumed::bytes(line));
        }
        Parsed::Refused(_, line) if http::speaks(&input[..line]) => {
            return Some(Consumed::all_and_close(input));
        }
        // Only the length matters: memcached does not read the other words.
        Parsed::Refused(refusal, line)
            if input.starts_with(b"set ")
                && (2..=TOKEN_BYTES_MAX + 2).contains(&refusal.swallow()) =>
        {
            (line, refusal.swallow() as usize - 2)
        }
        Parsed::Command(_, line) | Parsed::Refused(_, line) => {
            context.out.extend_from_slice(b"CLIENT_ERROR unauthenticated\r\n");
            return Some(Consumed::bytes(line));
        }
    };
    let data = input.get(line..line + length + 2)?;
    let (token, end) = data.split_at(length);
    let space = token.iter().position(|byte| *byte == b' ');
    let reply: &[u8] = match (end, space) {
        (b"\r\n", Some(space)) => {
            let (user, password) = (&token[..space], &token[space + 1..]);
            connection.authenticated =
                context.state.authenticate(|accounts| accounts.allow(user, password));
            match connection.authenticated {
                true => b"STORED\r\n",
                false => b"CLIENT_ERROR authentication failure\r\n",
            }
        }
        (b"\r\n", None) => b"CLIENT_ERROR bad authentication token format\r\n",
        _ => b"CLIENT_ERROR bad command line termination\r\n",
    };
    context.out.extend_from_slice(reply);
    Some(Consumed::bytes(line + data.len()))
}
