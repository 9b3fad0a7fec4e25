//! The thread that closes connections that sent nothing for too long.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::state::peer::EndReason;
use crate::state::server_state::State;

/// Times are counted in seconds.
const INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

pub struct IdleThread {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl IdleThread {
    /// Start the thread, if the server has a timeout.
    pub fn start(state: &Arc<State>) -> io::Result<Option<IdleThread>> {
        if state.settings.idle_timeout_s == 0 {
            return Ok(None);
        }
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (state, woken) = (Arc::clone(state), Arc::clone(&wake));
        let thread = thread::Builder::new().name("idle".to_owned()).spawn(move || {
            while !is_woken(&woken) {
                shut_down_idle(&state);
            }
        })?;
        Ok(Some(IdleThread { wake, thread: Some(thread) }))
    }

    pub fn stop(&mut self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Wait for a second, or until the order to stop, of which there is only one.
fn is_woken(wake: &OwnedFd) -> bool {
    let mut sources = [PollFd::new(wake, PollFlags::IN)];
    match poll(&mut sources, Some(&INTERVAL)) {
        Ok(ready) => ready > 0,
        Err(error) => error != rustix::io::Errno::INTR,
    }
}

fn shut_down_idle(state: &State) {
    let now_s = state.now_s();
    for peer in state.peers() {
        let idle = peer.idle_s(now_s) > state.settings.idle_timeout_s;
        if idle && peer.end_reason() != EndReason::IdleTimeout && !peer.watches() {
            peer.ends_because(EndReason::IdleTimeout);
            peer.shut_down();
            state.idle_kicks.fetch_add(1, Ordering::Relaxed);
        }
    }
}
