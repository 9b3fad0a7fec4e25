//! Requests in, answers out. Lanes play in threads of their own and return at the end.

use std::fs::File;
use std::io::{BufRead, Write, stdin};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::call_log::CallLog;
use crate::client::{Session, refusal};
use crate::give_up::GivingUp;
use crate::lane::{Lane, Task, Turn, punctual_sleeps};
use crate::panics;
use crate::player::{Player, Run, Totals, done, usage};
use crate::prepare::Prepare;
use crate::slices::{Slice, Slices};
use crate::tape::{Refusal, Tape, kind_name};
use crate::watch::Watch;
use crate::window::{Window, instant_of};

const PROGRESS: Duration = Duration::from_secs(1);
/// The time that lanes need to be ready before a window begins.
const START_AHEAD_NS: u64 = 5_000_000;

enum Event<S: Session> {
    Line(String),
    /// The end of stdin.
    End,
    /// A lane of a run, by the run's number, has ended: the lane, or its panic.
    Over(u64, Result<Box<Lane<S>>, panics::Panic>),
    /// The last lane has ended a slice.
    SliceOver(u64),
}

/// Answers for one client.
pub struct Worker<S: Session> {
    name: &'static str,
    out: File,
    events: Receiver<Event<S>>,
    sender: Sender<Event<S>>,
    player: Option<Player<S>>,
    /// From begin_slices to end_slices; meanwhile the lanes are in their threads.
    slices: Option<Slices>,
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
        let (player, slices) = (None, None);
        let mut worker =
            Worker::<S> { name, out, events, sender, player, slices, runs: 0, ended: false };
        while !worker.ended {
            match worker.events.recv() {
                Ok(Event::Line(line)) => worker.answer(&line),
                Ok(Event::Over(..) | Event::SliceOver(_)) => {} // of a run that was given up
                Ok(Event::End) | Err(_) => return,
            }
        }
    }

    fn send(&mut self, message: &Value) {
        if writeln!(self.out, "{message}").is_err() {
            self.ended = true; // the orchestrator is gone
        }
    }

    fn answer(&mut self, line: &str) {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        let answer = match request["type"].as_str() {
            Some("hello") => hello::<S>(self.name),
            Some("prepare") => self.prepare(request),
            Some("run") => self.run(request),
            Some("begin_slices") => self.begin_slices(),
            Some("slice") => self.slice(request),
            Some("end_slices") => self.end_slices(),
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
        self.close_slices();
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
            return failed("protocol", "an unknown phase", true);
        }
        self.close_slices();
        let Some(mut player) = self.player.take() else {
            return failed("protocol", "run before prepare", true);
        };
        let open_loop = player.tape.times.is_some() && run.phase != "prefill";
        player.tape.generations.begin(run.phase == "prefill");
        let logs = CallLog::of_run(&run.calls, open_loop, player.lanes.len());
        let before = usage();
        let (window, watches) = self.start(&mut player, &run, &logs);
        let ended = self.wait_for_lanes(&window, &watches, true);
        if let Err(error) = CallLog::write(&run.calls, &logs) {
            return failed("internal", &format!("{}: {error}", run.calls), true);
        }
        let lanes = match ended {
            Ok(lanes) => lanes,
            Err(answer) => return answer,
        };
        let mut totals = Totals::of(&lanes, &window, open_loop);
        totals.add_cpu(before, usage());
        let message = done(&run.phase, &lanes, open_loop, &totals, false);
        player.lanes = lanes;
        self.player = Some(player);
        message
    }

    /// Move each lane into its thread.
    fn start(
        &mut self,
        player: &mut Player<S>,
        run: &Run,
        logs: &[Arc<CallLog>],
    ) -> (Arc<Window>, Vec<Arc<Watch>>) {
        self.runs += 1;
        let duration_ns = run.duration_ms.map(|ms| ms * 1_000_000);
        player.lanes.iter_mut().for_each(|lane| lane.reset(duration_ns));
        for (lane, log) in player.lanes.iter_mut().zip(logs) {
            lane.notes.calls = Some(log.clone());
        }
        let start_ns = instant_of(run.start_unix_ns, START_AHEAD_NS);
        let timeout_ns = player.setup.timeout_ms * 1_000_000;
        for lane in &mut player.lanes {
            lane.notes.timeline.start(start_ns);
            lane.notes.giving_up = GivingUp::of_run(&run.gives_up, start_ns);
        }
        let window = Arc::new(Window::new(start_ns, duration_ns, timeout_ns));
        let watches = player.lanes.iter().map(|lane| lane.notes.watch.clone()).collect();
        let (prefill, count) = (run.phase == "prefill", player.lanes.len() as u64);
        let quiet = !prefill && player.quiet();
        for (t, lane) in player.lanes.drain(..).enumerate() {
            let limit =
                run.ops.map_or(u64::MAX, |ops| ops / count + u64::from((t as u64) < ops % count));
            let task = Task { window: window.clone(), prefill, limit, quiet };
            let (sender, run) = (self.sender.clone(), self.runs);
            thread::spawn(move || {
                let ended = panics::caught(|| Box::new(lane.play(&task)));
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
        tells_progress: bool,
    ) -> Result<Vec<Lane<S>>, Value> {
        let mut lanes: Vec<Lane<S>> = Vec::new();
        let mut next = Instant::now() + PROGRESS;
        while lanes.len() < watches.len() {
            let lane = self.wait(window, watches, tells_progress, &mut next)?;
            lanes.extend(lane.map(|lane| *lane));
        }
        Ok(lanes)
    }

    /// Wait until a lane has ended, or until all have ended a slice (None).
    fn wait(
        &mut self,
        window: &Window,
        watches: &[Arc<Watch>],
        tells_progress: bool,
        next: &mut Instant,
    ) -> Result<Option<Box<Lane<S>>>, Value> {
        loop {
            match self.events.recv_timeout(next.saturating_duration_since(Instant::now())) {
                // Of a run that was given up.
                Ok(Event::Over(run, _) | Event::SliceOver(run)) if run != self.runs => {}
                Ok(Event::Over(_, Ok(lane))) => return Ok(Some(lane)),
                Ok(Event::SliceOver(_)) => return Ok(None),
                Ok(Event::Over(_, Err(panic))) => {
                    window.stop();
                    return Err(failed(panic.kind(), &panic.text, panic.own));
                }
                Ok(Event::Line(line)) => self.read_during_run(&line, window),
                // The caller is gone, and a call of the library may not come back.
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => std::process::exit(0),
                Err(RecvTimeoutError::Timeout) => {
                    *next += PROGRESS;
                    if tells_progress {
                        self.send_progress(watches);
                    }
                    if watches.iter().any(|watch| watch.is_lost(window.timeout_ns)) {
                        let text = "a call of the library does not return";
                        return Err(failed("client", text, false));
                    }
                }
            }
        }
    }

    fn send_progress(&mut self, watches: &[Arc<Watch>]) {
        let sum = |of: fn(&Watch) -> u64| watches.iter().map(|watch| of(watch)).sum::<u64>();
        let ops = sum(|watch| watch.done.load(Relaxed));
        let errors = sum(|watch| watch.failed.load(Relaxed));
        self.send(&json!({"type": "progress", "ops": ops, "errors": errors}));
    }

    /// Move each lane into a thread, where it waits for slices.
    fn begin_slices(&mut self) -> Value {
        self.close_slices();
        let Some(player) = &mut self.player else {
            return failed("protocol", "begin_slices before prepare", true);
        };
        self.runs += 1;
        let mut slices = Slices::new(
            player.tape.times.is_some(),
            player.quiet(),
            player.setup.timeout_ms * 1_000_000,
        );
        for mut lane in player.lanes.drain(..) {
            lane.reset_for_slices();
            slices.watches.push(lane.notes.watch.clone());
            let (lane_sender, turns) = channel::<Turn>();
            slices.turns.push(lane_sender);
            let (sender, run) = (self.sender.clone(), self.runs);
            thread::spawn(move || {
                let ended = panics::caught(|| {
                    punctual_sleeps();
                    for turn in turns {
                        if lane.play_slice(&turn) {
                            let _ = sender.send(Event::SliceOver(run));
                        }
                    }
                    Box::new(lane)
                });
                let _ = sender.send(Event::Over(run, ended));
            });
        }
        self.slices = Some(slices);
        json!({"type": "ready"})
    }

    /// Let the lanes play on for a short time.
    fn slice(&mut self, request: Value) -> Value {
        let slice: Slice = match serde_json::from_value(request) {
            Ok(slice) => slice,
            Err(error) => return failed("protocol", &format!("slice: {error}"), true),
        };
        if let Some(reason) = slice.refusal() {
            return failed("protocol", reason, true);
        }
        let Some(mut slices) = self.slices.take() else {
            return failed("protocol", "slice without begin_slices", true);
        };
        let before = usage();
        let turn = slices.begin(&slice, instant_of(slice.start_unix_ns, 0));
        let mut next = Instant::now() + PROGRESS;
        if let Err(answer) = self.wait(&turn.task.window, &slices.watches, false, &mut next) {
            self.player = None;
            return answer;
        }
        let message = slices.end(&slice, &turn, before);
        self.slices = Some(slices);
        message
    }

    fn end_slices(&mut self) -> Value {
        let Some(mut slices) = self.slices.take() else {
            return failed("protocol", "end_slices without begin_slices", true);
        };
        slices.turns.clear();
        let window = Window::new(0, None, slices.timeout_ns);
        match self.wait_for_lanes(&window, &slices.watches, false) {
            Ok(lanes) => {
                let message = done("measure", &lanes, slices.open_loop, &slices.totals, true);
                if let Some(player) = &mut self.player {
                    player.lanes = lanes;
                }
                message
            }
            Err(answer) => {
                self.player = None;
                answer
            }
        }
    }

    /// End the slices.
    fn close_slices(&mut self) {
        if self.slices.is_some() {
            self.end_slices();
        }
    }

    /// Handle the requests during a run.
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

fn hello<S: Session>(name: &str) -> Value {
    let client = S::CLIENT;
    let kinds = client.kinds().map(kind_name);
    let words = client
        .wires
        .iter()
        .chain(client.features)
        .chain(&["slices", "timeline", "groups", "calls"])
        .map(|word| (*word).to_owned());
    json!({
        "type": "ready", "protocol": 2, "client": format!("rust/{name}"), "library": client.library,
        "library_version": client.version, "language": "rust", "runtime": env!("RUSTC_VERSION"),
        "capabilities": words.chain(kinds).collect::<Vec<_>>(),
    })
}
