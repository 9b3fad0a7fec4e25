//! The context of every command.

use cachemark_storage::Reservation;

use crate::connection::direct_send::{DIRECT_BYTES_MIN, DirectSend};
use crate::state::server_state::State;
use crate::state::settings::ITEM_HEADER_BYTES;

/// The server's state, the client's socket, the time, and where the reply goes.
pub struct RequestContext<'a> {
    pub state: &'a State,
    /// The client's socket; `None` for datagrams.
    pub socket: Option<i32>,
    pub now_s: u32,
    /// The kinds of events that clients watch, as of the last read. Commands look here, and not at the state that
    /// all threads share.
    pub watched: u32,
    pub out: &'a mut Vec<u8>,
    /// The length of the output that memcached would have sent already.
    pub sent_at_once: usize,
    /// The client's socket, if long values may be sent to it at once.
    pub direct: Option<DirectSend<'a>>,
    /// The item whose value arrived in its own memory, for the command that is carried out.
    pub reserved: Option<Reservation>,
}

/// Append a value and its end, or send them at once if the value is long.
#[inline(always)]
pub fn append_or_send<const END: usize>(
    out: &mut Vec<u8>,
    direct: &mut Option<DirectSend<'_>>,
    value: &[u8],
    end: &[u8; END],
) {
    if value.len() >= DIRECT_BYTES_MIN
        && let Some(socket) = direct
    {
        return socket.send(out, value, end);
    }
    out.extend_from_slice(value);
    out.extend_from_slice(end);
}

impl RequestContext<'_> {
    /// Whether a client watches one of these kinds of events.
    #[inline]
    pub fn wants(&self, kinds: u32) -> bool {
        self.watched & kinds != 0
    }

    /// Whether the replies so far are long enough to let other connections be served first. What is sent already takes
    /// no memory, so that more of it is allowed. Once the socket takes nothing more, a long value would be copied.
    #[inline]
    pub fn reaches(&self, pause_at: usize) -> bool {
        let (sent, full) = self.direct.as_ref().map_or((0, false), DirectSend::progress);
        full || self.out.len() + sent / 4 >= pause_at
    }

    /// Whether replies wait behind which memcached begins no dump. It sends those to a get or to `mn` at once.
    pub fn has_replied(&self) -> bool {
        self.out.len() > self.sent_at_once
    }

    /// Whether an item with `bytes` of key and value may be stored.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes + ITEM_HEADER_BYTES <= self.state.settings.item_bytes_max
    }

    /// Remove the present item of a set that failed: its value is outdated and must not be served.
    pub fn drop_stale(&self, key: &[u8]) {
        self.state.store.discard(key, self.now_s);
    }
}
