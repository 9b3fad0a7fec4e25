//! The thread of an event loop, as the acceptor sees it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::connection::guard::ConnectionGuard;
use crate::connection::stream::Stream;
use crate::state::server_state::State;
use crate::state::settings::IoMode;
use crate::transports::inbox::Inbox;
use crate::transports::report::report;
use crate::transports::watchers::Watchers;
use crate::transports::{epoll, uring};

/// A running event loop.
pub struct EventLoop {
    inbox: Arc<Inbox>,
    thread: Option<JoinHandle<()>>,
}

impl EventLoop {
    pub fn start(
        number: usize,
        state: &Arc<State>,
        watchers: &Arc<Watchers>,
    ) -> io::Result<EventLoop> {
        let inbox = Arc::new(Inbox::new()?);
        let (loop_inbox, state) = (Arc::clone(&inbox), Arc::clone(state));
        let watchers = Arc::clone(watchers);
        let thread = thread::Builder::new().name(format!("loop {number}")).spawn(move || {
            let run = match state.settings.io {
                IoMode::Uring => uring::run(&loop_inbox, &state, &watchers),
                IoMode::Busy => epoll::run(&loop_inbox, &state, &watchers, epoll::BUSY_POLL),
                IoMode::Events | IoMode::Blocking => {
                    epoll::run(&loop_inbox, &state, &watchers, Duration::ZERO)
                }
            };
            if let Err(error) = run {
                report(&format!("an event loop ended: {error}"));
            }
            // Connections that arrived last may not be watched yet.
            loop_inbox.take().iter().for_each(|(stream, _)| stream.shutdown());
        })?;
        Ok(EventLoop { inbox, thread: Some(thread) })
    }

    /// Hand a connection to the loop.
    pub fn serve(&self, stream: Stream, guard: ConnectionGuard) {
        self.inbox.put(stream, guard);
    }

    /// Whether it has not ended because of an error.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Close all its connections and wait until it has ended.
    pub fn stop(&mut self) {
        self.inbox.stop();
        if let Some(thread) = self.thread.take() {
            // A loop that panicked has ended too.
            let _ = thread.join();
        }
    }
}
