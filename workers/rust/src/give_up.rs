//! Callers that give up calls, for runs that ask for it (PROTOCOL.md, `GiveUp`): the future of a call is dropped.

use std::time::Duration;

use serde::Deserialize;

use crate::client::Session;
use crate::tape::Operation;

/// Which calls each caller gives up, in a part of the window.
#[derive(Clone, Deserialize)]
pub struct GiveUp {
    every: u64,
    after_ms: u64,
    begin_ms: u64,
    end_ms: u64,
}

/// The calls of one caller, some of which it gives up.
pub struct GivingUp {
    asked: GiveUp,
    start_ns: u64,
    /// The calls in the part so far.
    calls: u64,
}

impl GivingUp {
    /// For a run whose window starts at this instant, if the run asks for it.
    pub fn of_run(asked: &Option<GiveUp>, start_ns: u64) -> Option<GivingUp> {
        asked.clone().map(|asked| GivingUp { asked, start_ns, calls: 0 })
    }

    /// Make a call that begins now. None if it was given up.
    pub async fn call<S: Session>(
        &mut self,
        session: &mut S,
        op: &Operation,
        now_ns: u64,
    ) -> Option<Result<S::Answer, S::Error>> {
        match self.limit(now_ns) {
            None => Some(session.call(op).await),
            Some(limit) => tokio::time::timeout(limit, session.call(op)).await.ok(),
        }
    }

    /// The time after which to give up a call that begins now; None: never.
    fn limit(&mut self, now_ns: u64) -> Option<Duration> {
        let since_ms = now_ns.saturating_sub(self.start_ns) / 1_000_000;
        if since_ms < self.asked.begin_ms || since_ms >= self.asked.end_ms {
            return None;
        }
        self.calls += 1;
        let given_up = self.calls.is_multiple_of(self.asked.every);
        given_up.then(|| Duration::from_millis(self.asked.after_ms))
    }
}
