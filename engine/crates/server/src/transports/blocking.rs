//! Blocking I/O: a thread for each connection, which blocks in read and in write.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::connection::guard::ConnectionGuard;
use crate::connection::input_buffer::InputBuffer;
use crate::connection::stream::{ShutdownHandle, Stream};
use crate::session::Session;
use crate::state::clock::now_s;
use crate::state::server_state::State;

/// The threads, and the sockets of their connections, with which `stop` ends them.
#[derive(Clone, Default)]
pub struct ConnectionThreads {
    open: Arc<Mutex<HashMap<u64, ShutdownHandle>>>,
    next: Arc<AtomicU64>,
}

impl ConnectionThreads {
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
        let shared = Arc::clone(state);
        let spawned =
            thread::Builder::new().name(format!("connection {number}")).spawn(move || {
                // An error ends this connection and nothing else.
                let _ = serve_connection(stream, &guard, &shared);
                lock(&open).remove(&number);
                drop(guard);
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

fn serve_connection(mut stream: Stream, guard: &ConnectionGuard, state: &State) -> io::Result<()> {
    let mut session = Session::default();
    let mut input = InputBuffer::new();
    let mut out = Vec::with_capacity(4096);
    loop {
        let bytes = match stream.read(input.free_space()) {
            Ok(0) => {
                stream.send_close_notify();
                return Ok(());
            }
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        input.add_filled(bytes);
        let now_s = now_s();
        guard.received(bytes, now_s);
        loop {
            let fed = session.feed(input.pending(), state, now_s, &mut out);
            input.consume(fed.consumed);
            if !out.is_empty() {
                stream.write_all(&out)?;
                state.bytes_written.fetch_add(out.len() as u64, Ordering::Relaxed);
                out.clear();
            }
            if fed.close {
                stream.send_close_notify();
                stream.shutdown();
                return Ok(());
            }
            if !fed.paused {
                break;
            }
        }
        out.shrink_to(1 << 20);
    }
}
