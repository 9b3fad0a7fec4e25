//! Closes connections after a number of calls and opens them again, between two calls, not timed.

use std::sync::atomic::Ordering::Relaxed;

use crate::client::Session;
use crate::lane_record::LaneRecord;
use crate::prepare::Prepare;
use crate::window::clock_ns;

/// How a lane opens its session again.
pub struct Renewal<S: Session> {
    setup: Prepare,
    shared: S::Shared,
    after: u64,
    /// Calls since it was opened.
    made: u64,
}

impl<S: Session> Renewal<S> {
    /// None if the lane keeps its connections.
    pub fn of(setup: &Prepare, shared: &S::Shared) -> Option<Renewal<S>> {
        let after = setup.reconnect_after()?.ok()?;
        Some(Renewal { setup: setup.clone(), shared: shared.clone(), after, made: 0 })
    }

    /// Before a call: renew the session after its last call. If that fails, keep the old one.
    pub async fn before_call(&mut self, session: &mut S, notes: &mut LaneRecord) {
        self.made += 1;
        if self.made <= self.after {
            return;
        }
        self.made = 1;
        notes.watch.called_ns.store(clock_ns(), Relaxed);
        if notes.tape.kinds.iter().any(|kind| kind % 2 == 1) {
            // Operations without a reply must arrive first.
            notes.barriers += session.barrier().await.unwrap_or(0);
        }
        let servers = self.setup.servers.len() as u64;
        match S::open(&self.setup, self.shared.clone()).await {
            Ok(opened) => {
                notes.reconnects += session.reconnects() - notes.reconnects_before;
                notes.reconnects_before = opened.reconnects();
                notes.renewed += servers;
                *session = opened;
            }
            Err(text) => {
                eprintln!("connecting again: {text}");
                notes.failed_connects += servers;
            }
        }
        notes.watch.called_ns.store(0, Relaxed);
    }
}
