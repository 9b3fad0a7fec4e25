//! Blocking I/O: a thread for each connection, which waits in read and in write.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::guest::Guest;
use crate::session::Session;
use crate::state::{State, now_s};
use crate::stream::{Input, Plug, Stream};

/// The sockets of all connections, so that a stop can end them.
#[derive(Clone, Default)]
pub struct Threads {
    open: Arc<Mutex<HashMap<u64, Plug>>>,
    next: Arc<AtomicU64>,
}

impl Threads {
    /// Serve a connection on a thread of its own.
    pub fn serve(&self, stream: Stream, guest: Guest, state: &Arc<State>) -> io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let open = Arc::clone(&self.open);
        lock(&open).insert(number, stream.plug()?);
        let shared = Arc::clone(state);
        let spawned =
            thread::Builder::new().name(format!("connection {number}")).spawn(move || {
                // An error of one connection ends that connection and nothing else.
                let _ = converse(stream, &guest, &shared);
                lock(&open).remove(&number);
                drop(guest);
            });
        if spawned.is_err() {
            lock(&self.open).remove(&number);
        }
        spawned.map(|_| ())
    }

    /// End all connections.
    pub fn stop(&self) {
        lock(&self.open).values().for_each(Plug::pull);
    }
}

fn lock(open: &Mutex<HashMap<u64, Plug>>) -> std::sync::MutexGuard<'_, HashMap<u64, Plug>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

fn converse(mut stream: Stream, guest: &Guest, state: &State) -> io::Result<()> {
    let mut session = Session::default();
    let mut input = Input::new();
    let mut out = Vec::with_capacity(4096);
    loop {
        let bytes = match stream.read(input.room()) {
            Ok(0) => {
                stream.say_goodbye();
                return Ok(());
            }
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        input.filled(bytes);
        let now_s = now_s();
        guest.heard(bytes, now_s);
        loop {
            let fed = session.feed(input.pending(), state, now_s, &mut out);
            input.consume(fed.consumed);
            if !out.is_empty() {
                stream.write_all(&out)?;
                state.bytes_written.fetch_add(out.len() as u64, Ordering::Relaxed);
                out.clear();
            }
            if fed.close {
                stream.say_goodbye();
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
