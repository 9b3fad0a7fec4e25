//! The events at each expiry, as all callers account for it.
//!
//! An expiry begins with the first caller that has to refill, and ends when none is refilling any more. The item
//! cannot expire again meanwhile, as its expiry is longer than a refill.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

const LONGEST_NS: u64 = 3_600_000_000_000;

/// One expiry.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Expiry {
    /// Callers that made the value and stored it.
    pub refills: u64,
    /// Calls that got the old value while another caller refilled it.
    pub stale: u64,
    /// Calls that found no value, and waited until another caller had refilled it.
    pub waited: u64,
}

/// Percentiles of calls; all 0 without any.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Times {
    pub calls: u64,
    pub median_ns: u64,
    pub p99_ns: u64,
    pub most_ns: u64,
}

#[derive(Serialize)]
pub struct Summary {
    pub expiries: Vec<Expiry>,
    /// Calls that refilled.
    pub refilling: Times,
    /// Other calls that were under way while a caller refilled.
    pub others: Times,
    /// Calls while no caller refilled.
    pub between: Times,
}

struct State {
    expiries: Vec<Expiry>,
    /// Stale values that callers got before the winner came to begin its refill: they belong to the next expiry.
    early: u64,
    /// Callers that refill now.
    now: u64,
    refilling: Histogram<u64>,
    others: Histogram<u64>,
    between: Histogram<u64>,
}

/// The refills when a call begins.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    expiries: usize,
    refilling: bool,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Refilled,
    Stale,
    Waited,
    Hit,
}

pub struct Episodes {
    state: Mutex<State>,
    stopped: AtomicBool,
    wanted: usize,
    give_up: Instant,
}

impl Episodes {
    /// Play until there were `wanted` expiries, or until `give_up`.
    pub fn new(wanted: usize, give_up: Instant) -> Episodes {
        let times = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("valid bounds");
        let state = State {
            expiries: Vec::new(),
            early: 0,
            now: 0,
            refilling: times(),
            others: times(),
            between: times(),
        };
        Episodes { state: Mutex::new(state), stopped: AtomicBool::new(false), wanted, give_up }
    }

    pub fn is_over(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.give_up
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// A call begins.
    pub fn begin(&self) -> Begin {
        let state = self.lock();
        Begin { expiries: state.expiries.len(), refilling: state.now > 0 }
    }

    /// A caller begins to refill.
    pub fn begin_refill(&self) {
        let mut state = self.lock();
        if state.now == 0 {
            let stale = std::mem::take(&mut state.early);
            state.expiries.push(Expiry { stale, ..Expiry::default() });
        }
        state.now += 1;
        if let Some(expiry) = state.expiries.last_mut() {
            expiry.refills += 1;
        }
    }

    /// It has stored the value. After the last expiry, no caller goes on.
    pub fn end_refill(&self) {
        let mut state = self.lock();
        state.now -= 1;
        if state.now == 0 && state.expiries.len() == self.wanted {
            self.stop();
        }
    }

    /// A call has ended.
    pub fn add(&self, call: Call, took: Duration, begin: Begin) {
        let mut state = self.lock();
        let met = begin.refilling || state.now > 0;
        let is_early = !met && state.expiries.len() == begin.expiries;
        match state.expiries.last_mut() {
            Some(expiry) if !is_early => {
                expiry.stale += u64::from(call == Call::Stale);
                expiry.waited += u64::from(call == Call::Waited);
            }
            _ => state.early += u64::from(call == Call::Stale),
        }
        let times = match call {
            Call::Refilled => &mut state.refilling,
            Call::Hit if !met => &mut state.between,
            _ => &mut state.others,
        };
        times.saturating_record(took.as_nanos() as u64);
    }

    pub fn summary(&self) -> Summary {
        let state = self.lock();
        Summary {
            expiries: state.expiries.clone(),
            refilling: times(&state.refilling),
            others: times(&state.others),
            between: times(&state.between),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn times(of: &Histogram<u64>) -> Times {
    if of.is_empty() {
        return Times::default();
    }
    Times {
        calls: of.len(),
        median_ns: of.value_at_quantile(0.5),
        p99_ns: of.value_at_quantile(0.99),
        most_ns: of.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refills_that_overlap_belong_to_one_expiry() {
        let episodes = Episodes::new(2, Instant::now() + Duration::from_secs(600));
        let took = Duration::from_millis(3);
        episodes.add(Call::Hit, took, episodes.begin());
        episodes.begin_refill();
        episodes.begin_refill();
        episodes.add(Call::Stale, took, episodes.begin());
        episodes.end_refill();
        episodes.add(Call::Hit, took, episodes.begin());
        episodes.end_refill();
        assert!(!episodes.is_over());
        episodes.begin_refill();
        episodes.add(Call::Waited, took, episodes.begin());
        episodes.end_refill();
        assert!(episodes.is_over());
        let summary = episodes.summary();
        let counts = summary.expiries.iter().map(|one| (one.refills, one.stale, one.waited));
        assert_eq!(counts.collect::<Vec<_>>(), [(2, 1, 0), (1, 0, 1)]);
        assert_eq!((summary.between.calls, summary.others.calls), (1, 3));
    }

    #[test]
    fn stale_values_before_the_winner_begins_belong_to_its_expiry() {
        let episodes = Episodes::new(2, Instant::now() + Duration::from_secs(600));
        let took = Duration::from_millis(3);
        let counts = || {
            let expiries = episodes.summary().expiries;
            expiries.iter().map(|one| (one.refills, one.stale)).collect::<Vec<_>>()
        };
        episodes.add(Call::Stale, took, episodes.begin());
        let over_the_refill = episodes.begin();
        episodes.begin_refill();
        let late = episodes.begin();
        episodes.end_refill();
        episodes.add(Call::Stale, took, over_the_refill);
        episodes.add(Call::Stale, took, late);
        assert_eq!(counts(), [(1, 3)]);
        episodes.add(Call::Stale, took, episodes.begin());
        assert_eq!(counts(), [(1, 3)]);
        episodes.begin_refill();
        assert_eq!(counts(), [(1, 3), (1, 1)]);
    }
}
