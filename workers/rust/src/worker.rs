//! Requests in, answers out. Lanes play in threads of their own and come back when they are done.

use std::fs::File;
use std::io::{BufRead, Write, stdin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::client::Session;
use crate::lane::{Lane, Task, Watch};
use crate::panics;
use crate::player::{Player, Run, done, usage};
use crate::prepare::{Prepare, refusal};
use crate::tape::{Refusal, Tape, kind_name};
use crate::window::{Window, clock_ns};

const PROGRESS: Duration = Duration::from_secs(1);
/// Lanes need a moment to be there before a window begins.
const START_AHEAD_NS: u64 = 5_000_000;
/// A call that outlasts every time-out by this much will not come back.
const LOST_NS: u64 = 5_000_000_000;

enum Event<S: Session> {
    Line(String),
    /// The end of stdin.
    End,
    /// A lane of a run, by the run's number, has ended: itself, or what it panicked with.
    Over(u64, Result<Box<Lane<S>>, panics::Panic>),
}

/// Answers for one client.
pub struct Worker<S: Session> {
    name: &'static str,
    out: File,
    events: Receiver<Event<S>>,
    sender: Sender<Event<S>>,
    player: Option<Player<S>>,
    runs: u64,
    ended: bool,
}

fn failed(kind: &str, text: &str, definite: bool) -> Value {
    json!({"type": "error", "kind": kind, "text": text, "definite": definite})
}

fn unsupported(name: &str, reason: &str) -> Value {
    json!({"type": "unsupported", "reason": format!("{name}: {reason}")})
}

impl<S: Session> Worker<S> {
    /// Serve requests until `bye` or the end of stdin.
    pub fn serve(name: &'static str, out: File) {
        let (sender, events) = channel();
        let lines = sender.clone();
        thread::spawn(move || {
            for line in stdin().lock().lines().map_while(Result::ok) {
                let _ = lines.send(Event::Line(line));
            }
            let _ = lines.send(Event::End);
        });
        let mut worker =
            Worker::<S> { name, out, events, sender, player: None, runs: 0, ended: false };
        while !worker.ended {
            match worker.events.recv() {
                Ok(Event::Line(line)) => worker.answer(&line),
                Ok(Event::Over(..)) => {} // of a run that was given up
                Ok(Event::End) | Err(_) => return,
            }
        }
    }

    fn send(&mut self, message: &Value) {
        if writeln!(self.out, "{message}").is_err() {
            self.ended = true; // nobody is left to tell
        }
    }

    fn answer(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        let answer = match request["type"].as_str() {
            Some("hello") => hello::<S>(self.name),
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
        self.send(&answer);
    }

    fn prepare(&mut self, request: Value) -> Value {
        let setup: Prepare = match serde_json::from_value(request) {
            Ok(setup) => setup,
            Err(error) => return failed("protocol", &format!("prepare: {error}"), true),
        };
        self.player = None;
        let tape = match Tape::open(&setup.tape) {
            Ok(tape) => tape,
            Err(Refusal::NoTape(text)) => return failed("tape", &text, true),
            Err(Refusal::Unsupported(reason)) => return unsupported(self.name, &reason),
        };
        if let Some(reason) = refusal::<S>(&setup, tape) {
            return unsupported(self.name, &reason);
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
        let lanes = match self.wait_for_lanes(&window, &watches) {
            Ok(lanes) => lanes,
            Err(answer) => return answer,
        };
        let message = done(&run.phase, &player, &lanes, &window, before);
        player.lanes = lanes;
        self.player = Some(player);
        message
    }

    /// Each lane into its thread.
    fn start(&mut self, player: &mut Player<S>, run: &Run) -> (Arc<Window>, Vec<Arc<Watch>>) {
        self.runs += 1;
        let duration_ns = run.duration_ms.map(|ms| ms * 1_000_000);
        player.lanes.iter_mut().for_each(|lane| lane.reset(duration_ns));
        let wall_ns =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
        let start_ns = clock_ns() + run.start_unix_ns.saturating_sub(wall_ns).max(START_AHEAD_NS);
        let timeout_ns = player.setup.timeout_ms * 1_000_000;
        player.lanes.iter_mut().for_each(|lane| lane.notes.timeline.start(start_ns));
        let window = Arc::new(Window::new(start_ns, duration_ns, timeout_ns));
        let watches = player.lanes.iter().map(|lane| lane.notes.watch.clone()).collect();
        let (prefill, count) = (run.phase == "prefill", player.lanes.len() as u64);
        let quiet = !prefill && player.tape.kinds.iter().any(|kind| kind % 2 == 1);
        for (t, lane) in player.lanes.drain(..).enumerate() {
            let limit =
                run.ops.map_or(u64::MAX, |ops| ops / count + u64::from((t as u64) < ops % count));
            let task = Task { window: window.clone(), prefill, limit, quiet };
            let (sender, run) = (self.sender.clone(), self.runs);
            thread::spawn(move || {
                let ended = panics::caught(|| Box::new(lane.play(task)));
                let _ = sender.send(Event::Over(run, ended));
            });
        }
        (window, watches)
    }

    /// Wait for the lanes. An answer of type `error` if one of them is lost or has panicked.
    fn wait_for_lanes(
        &mut self,
        window: &Window,
        watches: &[Arc<Watch>],
    ) -> Result<Vec<Lane<S>>, Value> {
        let mut lanes: Vec<Lane<S>> = Vec::new();
        let mut next = Instant::now() + PROGRESS;
        while lanes.len() < watches.len() {
            match self.events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Over(run, _)) if run != self.runs => {} // of one that was given up
                Ok(Event::Over(_, Ok(lane))) => lanes.push(*lane),
                Ok(Event::Over(_, Err(panic))) => {
                    window.stop();
                    return Err(failed(panic.kind(), &panic.text, panic.own));
                }
                Ok(Event::Line(line)) => self.read_during_run(&line, window),
                // Nobody is left to tell, and a call of the library may not come back.
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
                Err(RecvTimeoutError::Timeout) => {
                    next += PROGRESS;
                    let sum =
                        |of: fn(&Watch) -> u64| watches.iter().map(|watch| of(watch)).sum::<u64>();
                    let ops = sum(|watch| watch.done.load(Relaxed));
                    let errors = sum(|watch| watch.failed.load(Relaxed));
                    self.send(&json!({"type": "progress", "ops": ops, "errors": errors}));
                    let longest = 2 * window.timeout_ns + LOST_NS;
                    if watches.iter().any(|watch| is_lost(watch.called_ns.load(Relaxed), longest)) {
                        let text = "a call of the library does not return";
                        return Err(failed("client", text, false));
                    }
                }
            }
        }
        Ok(lanes)
    }

    /// What is asked while a run goes on.
    fn read_during_run(&mut self, line: &str, window: &Window) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        match request["type"].as_str() {
            Some("stop") => window.stop(),
            Some("bye") => {
                window.stop();
                self.ended = true;
            }
            _ => self.send(&failed("protocol", "a run is going on", true)),
        }
    }
}

fn is_lost(called_ns: u64, longest_ns: u64) -> bool {
    called_ns > 0 && clock_ns() > called_ns + longest_ns
}

fn hello<S: Session>(name: &str) -> Value {
    let client = S::CLIENT;
    let kinds = client.kinds().map(kind_name);
    let words = client
        .wires
        .iter()
        .chain(client.features)
        .chain(&["timeline"])
        .map(|word| (*word).to_owned());
    json!({
        "type": "ready", "protocol": 2, "client": format!("rust/{name}"), "library": client.library,
        "library_version": client.version, "language": "rust", "runtime": env!("RUSTC_VERSION"),
        "capabilities": words.chain(kinds).collect::<Vec<_>>(),
    })
}
