//! `watch`: from now on the connection gets the lines of the log, and sends nothing.

use cachemark_protocol::words::Words;

use crate::commands::context::RequestContext;
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::state::event_log::kinds;

/// Carry out a `watch` whose line has this length.
#[inline(never)]
pub fn start(
    words: Words<'_>,
    line: usize,
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Consumed {
    let reply: &[u8] = match chosen(words) {
        _ if !context.state.settings.commands.watch => {
            b"CLIENT_ERROR watch commands not allowed\r\n"
        }
        _ if context.has_replied() => b"ERROR cannot pipeline other commands before watch\r\n",
        Some(chosen) if context.socket.is_some() => {
            let bytes_max = context.state.settings.watcher_buffer_bytes;
            if chosen & kinds::EVICTIONS != 0 {
                context.state.report_evictions();
            }
            connection.watching = context.state.log.add(chosen, bytes_max);
            match connection.watching {
                Some(_) => b"OK\r\n",
                None => b"WATCHER_TOO_MANY log watcher limit reached\r\n",
            }
        }
        _ => b"ERROR\r\n",
    };
    context.out.extend_from_slice(reply);
    // The session ends; the transport keeps the connection if it watches.
    Consumed { bytes: line, close: connection.watching.is_some(), waits: false }
}

/// The kinds of events that are asked for. `None` if a word names none.
fn chosen(words: Words<'_>) -> Option<u32> {
    let mut none = true;
    let mut chosen = 0;
    for word in words {
        none = false;
        chosen |= kinds::named(word)?;
    }
    Some(if none { kinds::FETCHERS } else { chosen })
}
