//! One prepared trial: the client of each lane, connected; and the answer of a run.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call_log::CallLog;
use crate::client::Session;
use crate::give_up::GiveUp;
use crate::groups::Groups;
use crate::histogram::{encode, histogram};
use crate::lane::Lane;
use crate::lane_record::{COUNTED, LEAD_IN, LaneRecord};
use crate::prepare::Prepare;
use crate::recorder::Recorder;
use crate::tape::{KINDS, Tape, kind_name};
use crate::timeline::{SECTIONS, Timeline};
use crate::window::Window;

pub struct Player<S: Session> {
    pub setup: Prepare,
    pub tape: &'static Tape,
    pub lanes: Vec<Lane<S>>,
}

impl<S: Session> Player<S> {
    /// Whether the tape has operations without a reply.
    pub fn quiet(&self) -> bool {
        self.tape.kinds.iter().any(|kind| kind % 2 == 1)
    }
}

#[derive(Deserialize)]
pub struct Run {
    pub phase: String,
    #[serde(default)]
    pub start_unix_ns: u64,
    pub ops: Option<u64>,
    pub duration_ms: Option<u64>,
    /// The path of the call log; empty for none.
    #[serde(default)]
    pub calls: String,
    pub gives_up: Option<GiveUp>,
}

pub fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("its own usage")
}

/// Times of a run, or of all slices together.
#[derive(Default)]
pub struct Totals {
    pub elapsed_ns: u64,
    pub send_elapsed_ns: u64,
    pub max_in_flight: u64,
    user_ns: i64,
    system_ns: i64,
}

impl Totals {
    /// The totals of a run, without its CPU time.
    pub fn of<S: Session>(lanes: &[Lane<S>], window: &Window, open_loop: bool) -> Totals {
        let notes = || lanes.iter().map(|lane| &lane.notes);
        let latest = |of: fn(&LaneRecord) -> u64| {
            notes().map(of).max().unwrap_or(0).saturating_sub(window.start_ns)
        };
        // In a closed loop each lane that plays is always in a call.
        let played = notes()
            .filter(|note| note.watch.done.load(Relaxed) + note.watch.failed.load(Relaxed) > 0)
            .count() as u64;
        Totals {
            elapsed_ns: latest(|note| note.ended_ns),
            send_elapsed_ns: latest(|note| note.sent_ns),
            max_in_flight: if open_loop { window.peak.load(Relaxed) } else { played },
            ..Totals::default()
        }
    }

    /// Add the CPU time between two readings.
    pub fn add_cpu(&mut self, before: Usage, after: Usage) {
        self.user_ns += (after.user_time() - before.user_time()).num_nanoseconds();
        self.system_ns += (after.system_time() - before.system_time()).num_nanoseconds();
    }
}

/// The end of a run, or of slices.
pub fn done<S: Session>(
    phase: &str,
    lanes: &[Lane<S>],
    open_loop: bool,
    totals: &Totals,
    slices: bool,
) -> Value {
    let notes = || lanes.iter().map(|lane| &lane.notes);
    let mut lag = histogram();
    notes().for_each(|note| lag.add(&note.lag).expect("same bounds"));
    let sum = |of: fn(&LaneRecord) -> u64| notes().map(of).sum::<u64>();
    let reconnects: u64 =
        lanes.iter().map(|lane| lane.session.reconnects() - lane.notes.reconnects_before).sum();
    let reconnects = reconnects + sum(|note| note.reconnects);
    let (timeline, sections) =
        Timeline::messages(notes().map(|note| &note.timeline), || responses(lanes, open_loop));
    let message = |recorder: &Recorder| recorder.message(open_loop);
    let counted = if slices { COUNTED..=COUNTED } else { 0..=usize::MAX };
    let lead_in = slices.then(|| operations(lanes, &(LEAD_IN..=LEAD_IN), Recorder::counts));
    json!({
        "type": "done", "phase": phase,
        "elapsed_ns": totals.elapsed_ns, "send_elapsed_ns": totals.send_elapsed_ns,
        "operations": operations(lanes, &counted, message), "lead_in": lead_in,
        "send_lag": encode(&lag), "max_in_flight": totals.max_in_flight,
        "queued": sum(|note| note.queued), "unsent": sum(|note| note.unsent),
        "barriers": sum(|note| note.barriers), "reconnects": reconnects,
        "renewed": sum(|note| note.renewed), "failed_connects": sum(|note| note.failed_connects),
        "cpu_user_ns": totals.user_ns, "cpu_system_ns": totals.system_ns,
        "timeline": timeline, "sections": sections,
        "groups": Groups::message(notes().map(|note| &note.groups)),
        "wrong_replies": CallLog::wrong_replies(notes().filter_map(|note| note.calls.as_ref())),
    })
}

/// The response times of each section, of all lanes and kinds.
fn responses<S: Session>(lanes: &[Lane<S>], open_loop: bool) -> Vec<Option<String>> {
    let section = |number: usize| {
        let mut sum = histogram();
        let recorders = lanes.iter().flat_map(|lane| lane.notes.recorders[number].iter().flatten());
        recorders.for_each(|recorder| sum.add(recorder.responses(open_loop)).expect("same bounds"));
        encode(&sum)
    };
    (0..SECTIONS).map(section).collect()
}

/// The operations in some sections of all lanes, by kind.
fn operations<S: Session>(
    lanes: &[Lane<S>],
    sections: &RangeInclusive<usize>,
    message: impl Fn(&Recorder) -> Value,
) -> Map<String, Value> {
    let mut operations = Map::new();
    for kind in 0..KINDS {
        let mut sum = Recorder::new();
        lanes
            .iter()
            .flat_map(|lane| lane.notes.recorders.iter().enumerate())
            .filter(|(number, _)| sections.contains(number))
            .filter_map(|(_, section)| section[kind].as_ref())
            .for_each(|recorder| sum.add(recorder));
        if sum.attempts > 0 || !sum.response.is_empty() {
            operations.insert(kind_name(kind), message(&sum));
        }
    }
    operations
}
