//! One connection's protocols: bytes in, bytes out. No I/O.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use cachemark_protocol::binary::request::REQUEST_MAGIC;
use cachemark_storage::Store;

use crate::commands::context::RequestContext;
use crate::commands::meta::flag_cache::FlagCache;
use crate::commands::{binary, text};
use crate::connection::direct_send::DirectSend;
use crate::requests::connection_state::{ConnectionState, Consumed, Dialect};
use crate::requests::lookahead::{Lookahead, ParsedRequest, Request};
use crate::state::event_log::Queue;
use crate::state::server_state::State;
use crate::state::settings::Protocol;

/// A session pauses once it has appended this number of bytes. The caller writes them and feeds it again.
const OUTPUT_PAUSE_BYTES: usize = 256 * 1024;

/// For this number of reads after a long value, another one is expected.
const EXPECTED_UPLOADS: u8 = 32;

/// The result of `Session::feed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// How many bytes of the input were taken. The caller offers the rest again, with more input behind it
    /// or after it has written the output.
    pub consumed: usize,
    /// Close the connection once the output is written.
    pub close: bool,
    /// The session stopped because the output is long, not because it needs more input.
    pub paused: bool,
    /// The length of the request that is not complete, if it is known; else 0.
    pub whole: usize,
    /// How many bytes were sent already, and are not in the output.
    pub sent: usize,
}

impl Fed {
    const NOTHING: Fed = Fed { consumed: 0, close: false, paused: false, whole: 0, sent: 0 };
}

/// Serves the requests of one connection: it finds where they begin, looks ahead, and lets the dispatcher of
/// the connection's protocol carry them out.
#[derive(Debug, Default)]
pub struct Session {
    connection: ConnectionState,
}

impl Session {
    /// A session for the client of this socket.
    pub fn of(socket: i32) -> Session {
        Session {
            connection: ConnectionState { socket: Some(socket), ..ConnectionState::default() },
        }
    }

    /// Whether the client has ended the session itself.
    pub fn has_quit(&self) -> bool {
        self.connection.quit
    }

    /// Whether the client watches the log from now on.
    pub fn watches(&self) -> bool {
        self.connection.watching.is_some()
    }

    /// The lines for a client that watches the log from now on. Its session has ended, its connection stays.
    pub fn take_watch(&mut self) -> Option<Arc<Queue>> {
        self.connection.watching.take()
    }

    /// Carry out the requests in `input` and append the replies to `out`.
    pub fn feed(&mut self, input: &[u8], state: &State, now_s: u32, out: &mut Vec<u8>) -> Fed {
        self.feed_from(input, state, now_s, out, None)
    }

    /// The same for a socket to which long values may be sent at once, with what is in `out`.
    pub fn feed_from(
        &mut self,
        input: &[u8],
        state: &State,
        now_s: u32,
        out: &mut Vec<u8>,
        direct: Option<DirectSend<'_>>,
    ) -> Fed {
        if self.connection.upload.is_some() {
            return self.feed_upload(input, state, now_s, out, direct);
        }
        let Some(first) = input.first() else {
            return Fed::NOTHING;
        };
        // Before the first byte there is nothing to skip.
        let protocol = state.settings.protocol;
        let dialect = *self.connection.dialect.get_or_insert(match *first {
            REQUEST_MAGIC if protocol != Protocol::Text => Dialect::Binary,
            _ => Dialect::Text,
        });
        if protocol == Protocol::Binary && dialect == Dialect::Text {
            return Fed { consumed: input.len(), close: true, ..Fed::NOTHING };
        }
        let context = RequestContext {
            state,
            socket: self.connection.socket,
            now_s,
            watched: state.log.wanted(),
            out,
            sent_at_once: 0,
            direct,
            reserved: None,
        };
        match dialect {
            Dialect::Text => self.feed_text(input, context),
            Dialect::Binary => self.feed_binary(input, context),
        }
    }

    /// Where the rest of a long value goes, which need not be fed.
    pub fn upload_space(&mut self) -> Option<&mut [u8]> {
        self.connection.upload.as_mut().map(|upload| upload.space())
    }

    /// How many bytes end a long value.
    pub fn upload_end_bytes(&self) -> usize {
        if self.connection.dialect == Some(Dialect::Text) { b"\r\n".len() } else { 0 }
    }

    /// Record that `bytes` bytes of the value were written there.
    pub fn uploaded(&mut self, bytes: usize) {
        if let Some(upload) = &mut self.connection.upload {
            upload.add_filled(bytes);
        }
    }

    /// Whether the next read may bring the beginning of another long value, as one arrived lately.
    pub fn expects_upload(&mut self) -> bool {
        let expected = self.connection.expected_uploads > 0;
        self.connection.expected_uploads = self.connection.expected_uploads.saturating_sub(1);
        expected
    }

    /// Whether a long value has not arrived completely.
    pub fn is_uploading(&self) -> bool {
        self.connection.upload.is_some()
    }

    /// Take the rest of a long value from the input. Once it is complete, carry out its command and those behind it.
    fn feed_upload(
        &mut self,
        input: &[u8],
        state: &State,
        now_s: u32,
        out: &mut Vec<u8>,
        direct: Option<DirectSend<'_>>,
    ) -> Fed {
        let end_bytes = self.upload_end_bytes();
        let Some(upload) = &mut self.connection.upload else { return Fed::NOTHING };
        let taken = upload.fill_from(input);
        if !upload.is_complete() || input.len() < taken + end_bytes {
            return Fed { consumed: taken, ..Fed::NOTHING };
        }
        let (end, rest) = input[taken..].split_at(end_bytes);
        self.connection.expected_uploads = EXPECTED_UPLOADS;
        if let Some(mut upload) = self.connection.upload.take() {
            let mut context = RequestContext {
                state,
                socket: self.connection.socket,
                now_s,
                watched: state.log.wanted(),
                out,
                sent_at_once: 0,
                direct: None,
                reserved: upload.take_reservation(),
            };
            match end {
                [] => binary::finish_upload(&upload.head, &mut context),
                end => text::finish_upload(&upload.head, end, &mut context),
            }
            if let Some(unused) = context.reserved.take() {
                state.store.release(&unused, now_s);
            }
        }
        let fed = self.feed_from(rest, state, now_s, out, direct);
        Fed { consumed: taken + end_bytes + fed.consumed, ..fed }
    }

    #[inline(never)]
    fn feed_text(&mut self, input: &[u8], mut context: RequestContext<'_>) -> Fed {
        let mut flags = FlagCache::default();
        self.carry_out(
            input,
            &context.state.store,
            |request, rest, connection, context, pause_at| {
                text::dispatch(request, &mut flags, rest, connection, context, pause_at)
            },
            &mut context,
        )
    }

    #[inline(never)]
    fn feed_binary(&mut self, input: &[u8], mut context: RequestContext<'_>) -> Fed {
        self.carry_out(
            input,
            &context.state.store,
            |request, rest, connection, context, _| {
                binary::dispatch(request, rest, connection, context)
            },
            &mut context,
        )
    }

    /// Carry out one request after the other. `dispatch` carries out one of them, or as much of it as the
    /// output has room for; it returns `None` if the request is not complete.
    #[inline]
    fn carry_out<'a, R: Request<'a>>(
        &mut self,
        input: &'a [u8],
        store: &'a Store,
        mut dispatch: impl FnMut(
            &ParsedRequest<'a, R>,
            &'a [u8],
            &mut ConnectionState,
            &mut RequestContext<'_>,
            usize,
        ) -> Option<Consumed>,
        context: &mut RequestContext<'_>,
    ) -> Fed {
        let mut fed = Fed::NOTHING;
        let pause_at = context.out.len() + OUTPUT_PAUSE_BYTES;
        let mut left = context.state.settings.requests_per_event.unwrap_or(u32::MAX);
        // Most inputs are one request. Then the lookahead, which has room for several, is not even made.
        let alone = ParsedRequest::<R>::alone(input);
        let mut lookahead = None;
        let mut ends = false;
        while !ends {
            if context.reaches(pause_at) {
                fed.paused = true;
                break;
            }
            let swallowed = self.connection.swallow.min((input.len() - fed.consumed) as u64);
            self.connection.swallow -= swallowed;
            fed.consumed += swallowed as usize;
            let rest = &input[fed.consumed..];
            if rest.is_empty() {
                break;
            }
            if left == 0 {
                context.state.yields.fetch_add(1, Ordering::Relaxed);
                fed.paused = true;
                break;
            }
            left -= 1;
            let request = match &alone {
                Some(request) if fed.consumed == 0 => request,
                _ => lookahead
                    .get_or_insert_with(|| Lookahead::new(input, store))
                    .request_at(fed.consumed),
            };
            if let Some(direct) = &mut context.direct {
                direct.more = request.parsed.length().is_some_and(|bytes| bytes < rest.len());
            }
            match dispatch(request, rest, &mut self.connection, context, pause_at) {
                Some(Consumed { bytes, close, waits }) => {
                    fed.consumed += bytes;
                    fed.close = close;
                    ends = close || waits;
                }
                None => {
                    fed.whole = request.parsed.length().unwrap_or(0);
                    break;
                }
            }
        }
        fed.sent = context.direct.as_ref().map_or(0, |direct| direct.sent);
        fed
    }
}
