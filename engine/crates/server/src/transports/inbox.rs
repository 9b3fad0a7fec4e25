//! How other threads reach an event loop: new connections and the order to stop.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::connection::guard::ConnectionGuard;
use crate::connection::stream::Stream;

/// A connection on its way to a loop.
pub type Arrival = (Stream, ConnectionGuard);

/// The inbox of an event loop, which wakes the loop by an eventfd.
pub struct Inbox {
    arrivals: Mutex<Vec<Arrival>>,
    pub wake: OwnedFd,
    stop: AtomicBool,
}

impl Inbox {
    pub fn new() -> io::Result<Inbox> {
        Ok(Inbox {
            arrivals: Mutex::new(Vec::new()),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            stop: AtomicBool::new(false),
        })
    }

    /// Put a connection in, and wake the loop.
    pub fn put(&self, stream: Stream, guard: ConnectionGuard) {
        self.lock().push((stream, guard));
        self.wake_loop();
    }

    /// Take out all connections.
    pub fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.lock())
    }

    /// Order the loop to stop, and wake it.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake_loop();
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Clear the eventfd, so that it can wake the loop again.
    pub fn clear_wake(&self) {
        let mut count = [0; 8];
        // It fails if an earlier event cleared it already.
        let _ = rustix::io::read(&self.wake, &mut count);
    }

    fn wake_loop(&self) {
        // It fails only if the eventfd's counter is full; then the loop is woken anyway.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arrival>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
