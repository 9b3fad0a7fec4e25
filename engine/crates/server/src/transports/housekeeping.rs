//! The thread that works once a second: it closes connections that sent nothing for too long, and removes items that
//! have expired.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::state::peer::EndReason;
use crate::state::server_state::State;

/// Times are counted in seconds.
const INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How much of each second may pass while expired items are removed: a segment in which one item has expired is read
/// as a whole, so that a store of items with many different exptimes would keep a CPU busy.
const REMOVAL: Duration = Duration::from_millis(10);

pub struct Housekeeping {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Housekeeping {
    pub fn start(state: &Arc<State>) -> io::Result<Housekeeping> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let (state, woken) = (Arc::clone(state), Arc::clone(&wake));
        let thread = thread::Builder::new().name("housekeeping".to_owned()).spawn(move || {
            let mut next_segment = 0;
            while !is_woken(&woken) {
                if state.settings.idle_timeout_s > 0 {
                    shut_down_idle(&state);
                }
                if state.tuning().lru_maintainer {
                    next_segment = remove_expired(&state, next_segment);
                }
            }
        })?;
        Ok(Housekeeping { wake, thread: Some(thread) })
    }

    pub fn stop(&mut self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

/// Wait for a second, or until the only order, to stop. Returns whether that order came.
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

/// Remove expired items from this segment on, for a while. Returns where to go on.
fn remove_expired(state: &State, first: usize) -> usize {
    let began = Instant::now();
    state.store.remove_expired_from(first, state.now_s(), || began.elapsed() < REMOVAL)
}
