//! A text connection that has not told who it is: the first storage command carries user and
//! password as its data, and everything else is refused.

use cachemark_protocol::text::command::{Command, StoreVerb};
use cachemark_protocol::text::request::{Parsed, parse};

use crate::execute::Turn;

/// Data that is longer is no user and password.
const TOKEN_BYTES_MAX: u64 = 2048;
const UNKNOWN: &[u8] = b"CLIENT_ERROR unauthenticated\r\n";

/// What one step through the input came to.
pub enum Login {
    Incomplete,
    Refused { bytes: usize, close: bool },
    Allowed { bytes: usize },
}

/// Carry out the command at the front of `input`, and append its reply.
pub fn step(input: &[u8], turn: &mut Turn<'_>) -> Login {
    let (line, length) = match parse(input) {
        Parsed::Incomplete => return Login::Incomplete,
        Parsed::TooLong => return Login::Refused { bytes: input.len(), close: true },
        Parsed::Command(Command::Store(store), line)
            if store.verb == StoreVerb::Set && store.length <= TOKEN_BYTES_MAX =>
        {
            (line, store.length as usize)
        }
        Parsed::Command(_, line) | Parsed::Refused(_, line) => {
            turn.out.extend_from_slice(UNKNOWN);
            return Login::Refused { bytes: line, close: false };
        }
    };
    let Some(data) = input.get(line..line + length + 2) else {
        return Login::Incomplete;
    };
    let bytes = line + data.len();
    let (token, end) = data.split_at(length);
    let state = turn.state;
    let space = token.iter().position(|byte| *byte == b' ');
    let (reply, allowed): (&[u8], bool) = match (end, space) {
        (b"\r\n", Some(space)) => {
            let known =
                state.logs_in(|accounts| accounts.allow(&token[..space], &token[space + 1..]));
            if known {
                (b"STORED\r\n", true)
            } else {
                (b"CLIENT_ERROR authentication failure\r\n", false)
            }
        }
        (b"\r\n", None) => (b"CLIENT_ERROR bad authentication token format\r\n", false),
        _ => (b"CLIENT_ERROR bad data chunk\r\n", false),
    };
    turn.out.extend_from_slice(reply);
    if allowed { Login::Allowed { bytes } } else { Login::Refused { bytes, close: false } }
}
