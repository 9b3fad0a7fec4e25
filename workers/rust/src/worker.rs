//! Requests in, answers out. Lanes play in threads of their own and come back when they are done.

use std::fs::File;
use std::io::{BufRead, Write, stdin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{Session, Setup};
use crate::course::{Course, SECTIONS};
use crate::lane::{Lane, Task, Watch, Window, clock_ns};
use crate::tally::{Tally, encode, histogram};
use crate::tape::{KINDS, Refusal, Tape, kind_name};

const PROGRESS: Duration = Duration::from_secs(1);
/// Lanes need a moment to be there before a window begins.
const START_AHEAD_NS: u64 = 5_000_000;
/// A call that outlasts every time-out by this much will not come back.
const LOST_NS: u64 = 5_000_000_000;

enum Event<S: Session> {
    Line(String),
    /// The end of stdin.
    End,
    Over(Box<Lane<S>>),
}

struct Player<S: Session> {
    setup: Setup,
    tape: &'static Tape,
    lanes: Vec<Lane<S>>,
}

#[derive(Deserialize)]
struct Run {
    phase: String,
    #[serde(default)]
    start_unix_ns: u64,
    ops: Option<u64>,
    duration_ms: Option<u64>,
}

/// Answers for one client.
pub struct Worker<S: Session> {
    out: File,
    events: Receiver<Event<S>>,
    sender: Sender<Event<S>>,
    player: Option<Player<S>>,
    ended: bool,
}

fn failed(kind: &str, text: &str, definite: bool) -> Value {
    json!({"type": "error", "kind": kind, "text": text, "definite": definite})
}

fn unsupported<S: Session>(reason: &str) -> Value {
    json!({"type": "unsupported", "reason": format!("{}: {reason}", S::CLIENT.name)})
}

impl<S: Session> Worker<S> {
    /// Serve requests until `bye` or the end of stdin.
    pub fn serve(out: File) {
        let (sender, events) = channel();
        let lines = sender.clone();
        thread::spawn(move || {
            for line in stdin().lock().lines().map_while(Result::ok) {
                let _ = lines.send(Event::Line(line));
            }
            let _ = lines.send(Event::End);
        });
        let mut worker = Worker::<S> { out, events, sender, player: None, ended: false };
        while !worker.ended {
            match worker.events.recv() {
                Ok(Event::Line(line)) => worker.answer(&line),
                Ok(Event::Over(_)) => {} // of a run that was given up
                Ok(Event::End) | Err(_) => return,
            }
        }
    }

    fn tell(&mut self, message: &Value) {
        if writeln!(self.out, "{message}").is_err() {
            self.ended = true; // nobody is left to tell
        }
    }

    fn answer(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        let answer = match request["type"].as_str() {
            Some("hello") => hello::<S>(),
            Some("prepare") => self.prepare(request),
            Some("run") => self.run(request),
            Some("bye") => {
                self.ended = true;
                return;
            }
            Some("stop") => return,
            _ => failed(
                "protocol",
                &format!("not a request: {}", line.chars().take(120).collect::<String>()),
                true,
            ),
        };
        self.tell(&answer);
    }

    fn prepare(&mut self, request: Value) -> Value {
        let setup: Setup = match serde_json::from_value(request) {
            Ok(setup) => setup,
            Err(error) => return failed("protocol", &format!("prepare: {error}"), true),
        };
        self.player = None;
        let tape = match Tape::open(&setup.tape) {
            Ok(tape) => tape,
            Err(Refusal::NoTape(text)) => return failed("tape", &text, true),
            Err(Refusal::Unsupported(reason)) => return unsupported::<S>(&reason),
        };
        if let Some(reason) = refusal::<S>(&setup, tape) {
            return unsupported::<S>(&reason);
        }
        let shared = S::share(&setup);
        let lanes: Result<Vec<_>, _> =
            (0..setup.threads).map(|t| Lane::open(&setup, shared.clone(), tape, t)).collect();
        match lanes {
            Ok(lanes) => {
                self.player = Some(Player { setup, tape, lanes });
                json!({"type": "ready"})
            }
            Err(text) => failed("connect", &text, true),
        }
    }

    fn run(&mut self, request: Value) -> Value {
        let run: Run = match serde_json::from_value(request) {
            Ok(run) => run,
            Err(error) => return failed("protocol", &format!("run: {error}"), true),
        };
        if !["prefill", "warmup", "measure"].contains(&run.phase.as_str()) {
            return failed("protocol", "no phase that it knows", true);
        }
        let Some(mut player) = self.player.take() else {
            return failed("protocol", "run before prepare", true);
        };
        let before = usage();
        let (window, watches) = self.start(&mut player, &run);
        let Some(lanes) = self.attend(&window, &watches) else {
            return failed("client", "a call of the library does not return", false);
        };
        let message = done(&run.phase, &player, &lanes, &window, before);
        player.lanes = lanes;
        self.player = Some(player);
        message
    }

    /// Each lane into its thread.
    fn start(&mut self, player: &mut Player<S>, run: &Run) -> (Arc<Window>, Vec<Arc<Watch>>) {
        let duration_ns = run.duration_ms.map(|ms| ms * 1_000_000);
        player.lanes.iter_mut().for_each(|lane| lane.reset(duration_ns));
        let wall_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        let start_ns = clock_ns() + run.start_unix_ns.saturating_sub(wall_ns).max(START_AHEAD_NS);
        let timeout_ns = player.setup.timeout_ms * 1_000_000;
        player.lanes.iter_mut().for_each(|lane| lane.notes.course.start(start_ns));
        let window = Arc::new(Window::new(start_ns, duration_ns, timeout_ns));
        let watches = player.lanes.iter().map(|lane| lane.notes.watch.clone()).collect();
        let (prefill, count) = (run.phase == "prefill", player.lanes.len() as u64);
        let quiet = !prefill && player.tape.kinds.iter().any(|kind| kind % 2 == 1);
        for (t, lane) in player.lanes.drain(..).enumerate() {
            let limit =
                run.ops.map_or(u64::MAX, |ops| ops / count + u64::from((t as u64) < ops % count));
            let task = Task { window: window.clone(), prefill, limit, quiet };
            let sender = self.sender.clone();
            thread::spawn(move || {
                let _ = sender.send(Event::Over(Box::new(lane.play(task))));
            });
        }
        (window, watches)
    }

    /// Wait for the lanes. None if one of them is lost.
    fn attend(&mut self, window: &Window, watches: &[Arc<Watch>]) -> Option<Vec<Lane<S>>> {
        let mut lanes: Vec<Lane<S>> = Vec::new();
        let mut next = Instant::now() + PROGRESS;
        while lanes.len() < watches.len() {
            match self.events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Over(lane)) => lanes.push(*lane),
                Ok(Event::Line(line)) => self.listen_in(&line, window),
                // Nobody is left to tell, and a call of the library may not come back.
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
                Err(RecvTimeoutError::Timeout) => {
                    next += PROGRESS;
                    let sum =
                        |of: fn(&Watch) -> u64| watches.iter().map(|watch| of(watch)).sum::<u64>();
                    let ops = sum(|watch| watch.done.load(Relaxed));
                    let errors = sum(|watch| watch.failed.load(Relaxed));
                    self.tell(&json!({"type": "progress", "ops": ops, "errors": errors}));
                    let longest = 2 * window.timeout_ns + LOST_NS;
                    if watches.iter().any(|watch| is_lost(watch.called_ns.load(Relaxed), longest)) {
                        return None;
                    }
                }
            }
        }
        Some(lanes)
    }

    /// What is asked while a run goes on.
    fn listen_in(&mut self, line: &str, window: &Window) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        match request["type"].as_str() {
            Some("stop") => window.stop(),
            Some("bye") => {
                window.stop();
                self.ended = true;
            }
            _ => self.tell(&failed("protocol", "a run is going on", true)),
        }
    }
}

fn is_lost(called_ns: u64, longest_ns: u64) -> bool {
    called_ns > 0 && clock_ns() > called_ns + longest_ns
}

fn hello<S: Session>() -> Value {
    let client = S::CLIENT;
    let kinds = client.kinds().map(kind_name);
    let words = client
        .wires
        .iter()
        .chain(client.features)
        .chain(&["course"])
        .map(|word| (*word).to_owned());
    json!({
        "type": "ready", "protocol": 1, "client": format!("rust/{}", client.name), "library": client.library,
        "library_version": client.version, "language": "rust", "runtime": env!("RUSTC_VERSION"),
        "capabilities": words.chain(kinds).collect::<Vec<_>>(),
    })
}

/// What of a trial cannot be played, before anything is timed.
fn refusal<S: Session>(setup: &Setup, tape: &Tape) -> Option<String> {
    let client = S::CLIENT;
    let own: Vec<_> = client.kinds().collect();
    let missing: Vec<_> =
        tape.kinds.iter().filter(|kind| !own.contains(kind)).map(|kind| kind_name(*kind)).collect();
    let unix = setup.servers.iter().any(|server| server.starts_with("unix:"));
    let can = |feature: &str| client.features.contains(&feature);
    let option = setup.options.iter().find(|(name, value)| {
        !client
            .options
            .iter()
            .any(|(known, values)| known == name && values.contains(&value.as_str()))
    });
    let numbers = [setup.threads, setup.connections, setup.depth, setup.timeout_ms as usize];
    let checks = [
        (
            numbers.contains(&0) || setup.segment.0 >= setup.segment.1,
            "numbers that mean nothing".to_owned(),
        ),
        (
            client.in_process && !setup.servers.is_empty(),
            "it is in this process and takes no servers".into(),
        ),
        (!client.in_process && setup.servers.is_empty(), "it needs a server".into()),
        (!client.wires.contains(&setup.wire.as_str()), format!("no wire {}", setup.wire)),
        (unix && !can("unix"), "no Unix sockets".into()),
        (setup.servers.len() > 1 && !can("cluster"), "one server only".into()),
        (tape.thinks, "no time to think between operations".into()),
        (setup.depth > 1, "one operation at a time on a connection (depth 1)".into()),
        (
            !client.in_process && setup.connections != setup.threads,
            "one connection for each thread".into(),
        ),
        (!missing.is_empty(), format!("no {}", missing.join(", "))),
        (option.is_some(), format!("no option {option:?}; it has: {:?}", client.options)),
    ];
    let refused = checks.into_iter().find(|(refused, _)| *refused).map(|(_, reason)| reason);
    refused.or_else(|| S::refuse(setup, tape).map(str::to_owned))
}

fn usage() -> Usage {
    getrusage(UsageWho::RUSAGE_SELF).expect("its own usage")
}

fn done<S: Session>(
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
    let latest = |of: fn(&crate::lane::Notes) -> u64| {
        notes().map(of).max().unwrap_or(0).saturating_sub(window.start_ns)
    };
    let sum = |of: fn(&crate::lane::Notes) -> u64| notes().map(of).sum::<u64>();
    let reconnects: u64 =
        lanes.iter().map(|lane| lane.session.reconnects() - lane.notes.reconnects_before).sum();
    let (course, sections) =
        Course::messages(notes().map(|note| &note.course), || responses(lanes, open_loop));
    json!({
        "type": "done", "phase": phase,
        "elapsed_ns": latest(|note| note.ended_ns), "send_elapsed_ns": latest(|note| note.sent_ns),
        "operations": operations(lanes, open_loop), "lag": encode(&lag),
        "max_in_flight": if open_loop { window.peak.load(Relaxed) } else { played as u64 },
        "bound": sum(|note| note.bound), "unsent": sum(|note| note.unsent),
        "barriers": sum(|note| note.barriers), "reconnects": reconnects,
        "cpu_user_ns": (after.user_time() - before.user_time()).num_nanoseconds(),
        "cpu_system_ns": (after.system_time() - before.system_time()).num_nanoseconds(),
        "course": course, "sections": sections,
    })
}

/// The response times of each section, of all lanes and kinds.
fn responses<S: Session>(lanes: &[Lane<S>], open_loop: bool) -> Vec<Option<String>> {
    let section = |number: usize| {
        let mut sum = histogram();
        let tallies = lanes.iter().flat_map(|lane| lane.notes.tallies[number].iter().flatten());
        tallies.for_each(|tally| sum.add(tally.responses(open_loop)).expect("same bounds"));
        encode(&sum)
    };
    (0..SECTIONS).map(section).collect()
}

fn operations<S: Session>(lanes: &[Lane<S>], open_loop: bool) -> Map<String, Value> {
    let mut operations = Map::new();
    for kind in 0..KINDS {
        let mut sum = Tally::new();
        lanes
            .iter()
            .flat_map(|lane| &lane.notes.tallies)
            .filter_map(|section| section[kind].as_ref())
            .for_each(|tally| sum.add(tally));
        if sum.attempts > 0 || !sum.response.is_empty() {
            operations.insert(kind_name(kind), sum.message(open_loop));
        }
    }
    operations
}
