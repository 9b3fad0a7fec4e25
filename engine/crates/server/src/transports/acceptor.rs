//! The thread that accepts connections and hands each to a thread or to an event loop.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;

use crate::connection::guard::ConnectionGuard;
use crate::connection::stream::Stream;
use crate::state::server_state::State;
use crate::state::settings::IoMode;
use crate::transports::blocking::ConnectionThreads;
use crate::transports::event_loop::EventLoop;
use crate::transports::listeners::Listener;
use crate::transports::report::report;

/// The same problem is reported again only after this time.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

pub struct Acceptor {
    listeners: Vec<Listener>,
    wake: Arc<OwnedFd>,
    state: Arc<State>,
    loops: Arc<Vec<EventLoop>>,
    threads: ConnectionThreads,
    next_loop: usize,
    /// When it was last reported that the system could not provide a connection.
    reported: Option<Instant>,
}

impl Acceptor {
    pub fn new(
        listeners: Vec<Listener>,
        wake: Arc<OwnedFd>,
        state: Arc<State>,
        loops: Arc<Vec<EventLoop>>,
        threads: ConnectionThreads,
    ) -> Acceptor {
        Acceptor { listeners, wake, state, loops, threads, next_loop: 0, reported: None }
    }

    /// Accept connections until `wake` becomes readable.
    pub fn run(mut self) {
        loop {
            let mut sockets: Vec<PollFd<'_>> = self
                .listeners
                .iter()
                .map(|at| PollFd::from_borrowed_fd(at.as_fd(), PollFlags::IN))
                .collect();
            sockets.push(PollFd::new(&*self.wake, PollFlags::IN));
            if poll(&mut sockets, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                return;
            }
            let ready: Vec<bool> = sockets.iter().map(|at| !at.revents().is_empty()).collect();
            if ready.last() == Some(&true) {
                return;
            }
            for (number, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
                self.accept(number);
            }
        }
    }

    fn accept(&mut self, number: usize) {
        match self.listeners[number].accept() {
            Ok((stream, address)) => self.admit(number, stream, address),
            // Most likely there is no file descriptor left: wait until some connections end.
            Err(error) => {
                self.report_failure(&error);
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Count a connection that the system could not provide, and report that now and then.
    fn report_failure(&mut self, error: &io::Error) {
        self.state.failed_connections.fetch_add(1, Ordering::Relaxed);
        if self.reported.is_none_or(|reported| reported.elapsed() > REPORT_INTERVAL) {
            self.reported = Some(Instant::now());
            report(&format!(
                "cannot accept a connection: {error}; raise the limit (ulimit -n) or lower \
                 --max-connections"
            ));
        }
    }

    fn admit(&mut self, number: usize, mut stream: Stream, address: String) {
        let listener = self.listeners[number].name();
        let Some(guard) = ConnectionGuard::admit(&self.state, stream.as_fd(), address, listener)
        else {
            // The peer may be gone; the connection ends in any case. With TLS, the error could be sent
            // only after the handshake.
            if !matches!(stream, Stream::Tls(_)) {
                let _ = stream.write(b"ERROR Too many open connections\r\n");
            }
            stream.shutdown();
            return;
        };
        match self.state.settings.io {
            // Without a thread there is no connection: its guard was dropped.
            IoMode::Blocking => {
                if let Err(error) = self.threads.serve(stream, guard, &self.state) {
                    self.report_failure(&error);
                }
            }
            IoMode::Events | IoMode::Uring | IoMode::Busy => self.hand_over(stream, guard),
        }
    }

    /// Hand a connection to the next event loop that runs. If none runs, the connection ends here.
    fn hand_over(&mut self, stream: Stream, guard: ConnectionGuard) {
        let count = self.loops.len();
        let mut numbers = (0..count).map(|n| (self.next_loop + n) % count);
        if let Some(number) = numbers.find(|number| self.loops[*number].is_running()) {
            self.loops[number].serve(stream, guard);
            self.next_loop = (number + 1) % count;
        }
    }
}
