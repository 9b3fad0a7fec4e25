//! A thread that serves many connections, seen from outside: what it is handed, and how it ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::events;
use crate::guest::Guest;
use crate::state::{IoMode, State};
use crate::stream::Stream;
use crate::uring;

/// Connections on their way to a loop.
pub struct Inbox {
    arrived: Mutex<Vec<(Stream, Guest)>>,
    pub wake: OwnedFd,
    stop: AtomicBool,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Vec<(Stream, Guest)>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self) -> Vec<(Stream, Guest)> {
        std::mem::take(&mut *self.lock())
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn rouse(&self) {
        // The counter of an eventfd is full only when the loop has been woken anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Let the eventfd wake the loop again.
    pub fn calm(&self) {
        let mut count = [0; 8];
        // Nothing to read means that another event has taken it.
        let _ = rustix::io::read(&self.wake, &mut count);
    }
}

/// A loop that runs.
pub struct Loop {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

impl Loop {
    pub fn start(number: usize, state: &Arc<State>) -> io::Result<Loop> {
        let inbox = Arc::new(Inbox {
            arrived: Mutex::new(Vec::new()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
        });
        let (theirs, state) = (Arc::clone(&inbox), Arc::clone(state));
        let thread = thread::Builder::new().name(format!("loop {number}")).spawn(move || {
            let run = match state.settings.io {
                IoMode::Uring => uring::run(&theirs, &state),
                IoMode::Busy => events::run(&theirs, &state, events::BUSY_FOR),
                IoMode::Events | IoMode::Blocking => events::run(&theirs, &state, Duration::ZERO),
            };
            if let Err(error) = run {
                eprintln!("cachemark-engine: a loop ended: {error}");
            }
            // Those that came last may not be watched yet.
            theirs.take().iter().for_each(|(stream, _)| stream.shutdown());
        })?;
        Ok(Loop { inbox, thread: Some(thread) })
    }

    /// Hand over a connection.
    pub fn serve(&self, stream: Stream, guest: Guest) {
        self.inbox.lock().push((stream, guest));
        self.inbox.rouse();
    }

    /// Whether it has not ended before its time.
    pub fn runs(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Close all its connections and wait for it to end.
    pub fn stop(&mut self) {
        self.inbox.stop.store(true, Ordering::Release);
        self.inbox.rouse();
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has ended too.
            let _ = thread.join();
        }
    }
}
