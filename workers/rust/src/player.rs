//! One prepared trial: the client of each lane, connected; and the answer that a run comes to.

use std::sync::atomic::Ordering::Relaxed;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::Session;
use crate::histogram::{encode, histogram};
use crate::lane::{Lane, LaneRecord};
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

#[derive(Deserialize)]
pub struct Run {
    pub phase: String,
    #[serde(default)]
    pub start_unix_ns: u64,
    pub ops: Option<u64>,
    pub duration_ms: Option<u64>,
}

pub fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("its own usage")
}

pub fn done<S: Session>(
    phase: &str,
    player: &Player<S>,
    lanes: &[Lane<S>],
    window: &Window,
    before: Usage,
) -> Value {
    let after = usage();
    let open_loop = player.tape.times.is_some() && phase != "prefill";
    let notes = || lanes.iter().map(|lane| &lane.notes);
    let mut lag = histogram();
    notes().for_each(|note| lag.add(&note.lag).expect("same bounds"));
    let played = notes()
        .filter(|note| note.watch.done.load(Relaxed) + note.watch.failed.load(Relaxed) > 0)
        .count();
    let latest = |of: fn(&LaneRecord) -> u64| {
        notes().map(of).max().unwrap_or(0).saturating_sub(window.start_ns)
    };
    let sum = |of: fn(&LaneRecord) -> u64| notes().map(of).sum::<u64>();
    let reconnects: u64 =
        lanes.iter().map(|lane| lane.session.reconnects() - lane.notes.reconnects_before).sum();
    let (timeline, sections) =
        Timeline::messages(notes().map(|note| &note.timeline), || responses(lanes, open_loop));
    json!({
        "type": "done", "phase": phase,
        "elapsed_ns": latest(|note| note.ended_ns), "send_elapsed_ns": latest(|note| note.sent_ns),
        "operations": operations(lanes, open_loop), "send_lag": encode(&lag),
        "max_in_flight": if open_loop { window.peak.load(Relaxed) } else { played as u64 },
        "queued": sum(|note| note.queued), "unsent": sum(|note| note.unsent),
        "barriers": sum(|note| note.barriers), "reconnects": reconnects,
        "cpu_user_ns": (after.user_time() - before.user_time()).num_nanoseconds(),
        "cpu_system_ns": (after.system_time() - before.system_time()).num_nanoseconds(),
        "timeline": timeline, "sections": sections,
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

fn operations<S: Session>(lanes: &[Lane<S>], open_loop: bool) -> Map<String, Value> {
    let mut operations = Map::new();
    for kind in 0..KINDS {
        let mut sum = Recorder::new();
        lanes
            .iter()
            .flat_map(|lane| &lane.notes.recorders)
            .filter_map(|section| section[kind].as_ref())
            .for_each(|recorder| sum.add(recorder));
        if sum.attempts > 0 || !sum.response.is_empty() {
            operations.insert(kind_name(kind), sum.message(open_loop));
        }
    }
    operations
}
