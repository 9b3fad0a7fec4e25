//! Blocking I/O: a thread for each connection, which blocks in read and in write.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::connection::direct_send::DirectSend;
use crate::connection::guard::ConnectionGuard;
use crate::connection::input_buffer::{InputBuffer, ReadBuffers};
use crate::connection::stream::{ShutdownHandle, Stream};
use crate::session::Session;
use crate::state::event_log::Queue;
use crate::state::server_state::State;
use crate::state::traffic::{Observed, Observer, Unobserved};
use crate::transports::reading::{self, Received};
use crate::transports::watchers::Watchers;

/// The threads, and the sockets of their connections, with which `stop` ends them.
#[derive(Clone)]
pub struct ConnectionThreads {
    watchers: Arc<Watchers>,
    open: Arc<Mutex<HashMap<u64, ShutdownHandle>>>,
    next: Arc<AtomicU64>,
}

impl ConnectionThreads {
    pub fn new(watchers: Arc<Watchers>) -> ConnectionThreads {
        ConnectionThreads { watchers, open: Arc::default(), next: Arc::default() }
    }

    /// Serve a connection on a thread of its own.
    pub fn serve(
        &self,
        stream: Stream,
        guard: ConnectionGuard,
        state: &Arc<State>,
    ) -> io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let open = Arc::clone(&self.open);
        lock(&open).insert(number, stream.shutdown_handle()?);
        let (shared, watchers) = (Arc::clone(state), Arc::clone(&self.watchers));
        let mut stream = stream;
        let spawned =
            thread::Builder::new().name(format!("connection {number}")).spawn(move || {
                // An error ends this connection and nothing else.
                let watching = match shared.traffic() {
                    None => serve_connection(&mut stream, &guard, &shared, &mut Unobserved),
                    Some(log) => {
                        let mut observed = Observed::new(Arc::clone(log), guard.socket());
                        serve_connection(&mut stream, &guard, &shared, &mut observed)
                    }
                };
                lock(&open).remove(&number);
                if let Ok(Some(queue)) = watching {
                    watchers.add(stream, guard, queue, Vec::new());
                }
            });
        if spawned.is_err() {
            lock(&self.open).remove(&number);
        }
        spawned.map(|_| ())
    }

    /// End all connections.
    pub fn stop(&self) {
        lock(&self.open).values().for_each(ShutdownHandle::shut_down);
    }
}

fn lock(
    open: &Mutex<HashMap<u64, ShutdownHandle>>,
) -> std::sync::MutexGuard<'_, HashMap<u64, ShutdownHandle>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serve a connection until it ends. If it watches the log from then on, return the lines for it.
fn serve_connection(
    stream: &mut Stream,
    guard: &ConnectionGuard,
    state: &State,
    observer: &mut impl Observer,
) -> io::Result<Option<Arc<Queue>>> {
    let mut session = Session::of(guard.socket());
    let (mut input, mut buffers) = (InputBuffer::default(), ReadBuffers::of_one_connection());
    let mut out = Vec::new();
    loop {
        let received = match reading::read(stream, &mut session, &mut input, &mut buffers) {
            Ok(Received { bytes: 0, .. }) => {
                guard.client_ended();
                stream.send_close_notify();
                return Ok(None);
            }
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let now_s = state.now_s();
        guard.received(received.bytes, now_s);
        observer.received(received.bytes);
        let mut read = received.shared;
        while read > 0 || input.may_be_complete() {
            let pending = if read > 0 { &buffers.shared()[..read] } else { input.pending() };
            let direct = stream.plain_socket().map(DirectSend::to);
            let fed = session.feed_from(pending, state, now_s, &mut out, direct);
            if read > 0 {
                input.keep(fed.consumed, read, fed.whole, &mut buffers);
                read = 0;
            } else {
                input.consume(fed.consumed, fed.whole, &mut buffers);
            }
            if !out.is_empty() {
                stream.write_all(&out)?;
            }
            let written = out.len() + fed.sent;
            state.bytes_written.fetch_add(written as u64, Ordering::Relaxed);
            out.clear();
            if written > 0 {
                observer.answered(written);
            }
            if let (true, Some(queue)) = (fed.close, session.take_watch()) {
                return Ok(Some(queue));
            }
            if fed.close {
                if session.has_quit() {
                    guard.client_ended();
                }
                stream.send_close_notify();
                stream.shutdown();
                return Ok(None);
            }
            if !fed.paused {
                break;
            }
        }
        buffers.widen_after(received.shared);
        guard.set_awaits_data(!input.is_empty() || session.is_uploading());
        out.shrink_to(1 << 20);
    }
}
