//! The clients that watch the log: a thread writes the lines to them, and notices when they leave. It starts with
//! the first of them.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

use crate::connection::guard::ConnectionGuard;
use crate::connection::stream::Stream;
use crate::state::event_log::{EventLog, Queue};
use crate::state::server_state::State;

struct Watcher {
    stream: Stream,
    guard: ConnectionGuard,
    queue: Arc<Queue>,
    /// The bytes that are being sent, and how much of it is sent already.
    sending: Vec<u8>,
    sent: usize,
}

pub struct Watchers {
    state: Arc<State>,
    arrivals: Mutex<Vec<Watcher>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    stop: AtomicBool,
}

impl Watchers {
    pub fn new(state: &Arc<State>) -> Arc<Watchers> {
        Arc::new(Watchers {
            state: Arc::clone(state),
            arrivals: Mutex::default(),
            thread: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// A client watches from now on. `unsent` comes before the lines of its queue. If the system refuses the
    /// thread, the connection ends.
    pub fn add(
        self: &Arc<Watchers>,
        stream: Stream,
        guard: ConnectionGuard,
        queue: Arc<Queue>,
        unsent: Vec<u8>,
    ) {
        guard.begins_to_watch();
        let started = stream.set_nonblocking(true).and_then(|()| self.start());
        let watcher = Watcher { stream, guard, queue, sending: unsent, sent: 0 };
        match started {
            Ok(()) => {
                lock(&self.arrivals).push(watcher);
                self.state.log.wake_writer();
            }
            Err(_) => self.state.log.remove(&watcher.queue),
        }
    }

    fn start(self: &Arc<Watchers>) -> io::Result<()> {
        self.state.log.wake()?;
        let mut thread = lock(&self.thread);
        if thread.is_none() {
            let this = Arc::clone(self);
            let spawned = thread::Builder::new().name("watchers".to_owned());
            *thread = Some(spawned.spawn(move || this.run())?);
        }
        Ok(())
    }

    /// End all connections and the thread.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.state.log.wake_writer();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }

    fn run(&self) {
        let mut watchers: Vec<Watcher> = Vec::new();
        while !self.stop.load(Ordering::Acquire) {
            watchers.append(&mut lock(&self.arrivals));
            watchers.retain_mut(|watcher| watcher.write(&self.state.log).is_ok());
            if !self.wait(&mut watchers) {
                break;
            }
        }
        for watcher in watchers {
            watcher.stream.shutdown();
        }
    }

    /// Wait until there is something to do, and remove watchers that have left. False if waiting is impossible.
    fn wait(&self, watchers: &mut Vec<Watcher>) -> bool {
        let Ok(wake) = self.state.log.wake() else { return false };
        let mut sockets: Vec<PollFd<'_>> = watchers.iter().map(Watcher::awaited).collect();
        sockets.push(PollFd::new(wake, PollFlags::IN));
        if poll(&mut sockets, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return false;
        }
        let readable: Vec<bool> = sockets
            .iter()
            .map(|at| at.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR))
            .collect();
        if readable.last() == Some(&true) {
            // Clear it, so that it can wake the thread again.
            let _ = rustix::io::read(wake, &mut [0; 8]);
        }
        let mut readable = readable.into_iter();
        watchers.retain_mut(|watcher| {
            let stays = readable.next() != Some(true) || watcher.listens();
            if !stays {
                self.state.log.remove(&watcher.queue);
                watcher.guard.client_ended();
            }
            stays
        });
        true
    }
}

impl Watcher {
    /// The events to wait for: it leaves, or it can take more lines.
    fn awaited(&self) -> PollFd<'_> {
        let blocked = self.sent < self.sending.len();
        let flags = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        PollFd::from_borrowed_fd(self.stream.as_fd(), flags)
    }

    /// Write what waits, as far as the socket takes it. An error if the client is gone.
    fn write(&mut self, log: &EventLog) -> io::Result<()> {
        loop {
            if self.sent == self.sending.len() {
                self.sending = self.queue.take();
                self.sent = 0;
                if self.sending.is_empty() {
                    return match self.stream.flush() {
                        Err(error) if is_transient(&error) => Ok(()),
                        flushed => flushed,
                    };
                }
            }
            match self.stream.write(&self.sending[self.sent..]) {
                Ok(0) => return self.ended(log, io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    self.sent += bytes;
                    log.sent.fetch_add(bytes as u64, Ordering::Relaxed);
                }
                Err(error) if is_transient(&error) => return Ok(()),
                Err(error) => return self.ended(log, error),
            }
        }
    }

    fn ended(&self, log: &EventLog, error: io::Error) -> io::Result<()> {
        log.remove(&self.queue);
        Err(error)
    }

    /// Whether the client is still there. What it sends is dropped.
    fn listens(&mut self) -> bool {
        let mut dropped = [0; 1024];
        loop {
            match self.stream.read(&mut dropped) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return is_transient(&error),
            }
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
