//! All connections are lost while an open loop is played: every operation that was due ends, and is in the call
//! log once.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use cachemark_load::{
    CallOutcome, Clock, EventLoop, Failure, LoggedCall, Network, Player, Ready, RunResult,
    SharedState, Text, ThreadConnections, WaitLimit, Window, WorkSlice,
};
use cachemark_tape::{
    Arrivals, KeyDistribution, KeyShape, Lane, Schedule, Tape, Workload, generate, parse_mix,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const START_NS: u64 = SECOND;
const TIMEOUT_NS: u64 = 100 * MS;
const CONNECTIONS: usize = 2;
/// Operations a second, and seconds.
const RATE: u64 = 100;
const WINDOW_S: u64 = 5;
const DUE: u64 = RATE * WINDOW_S;

#[derive(Clone)]
struct VirtualClock(Rc<Cell<u64>>);

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum SocketState {
    Open,
    Connecting,
    Closed,
}

/// A server that answers every get with a miss, after a millisecond. It is down in one part of the time: then
/// connections end, and new ones are refused.
struct DownNetwork {
    clock: VirtualClock,
    down: std::ops::Range<u64>,
    states: [SocketState; CONNECTIONS],
    /// When the reply to the operation on each connection arrives.
    reply_at_ns: [Option<u64>; CONNECTIONS],
    ready: Vec<Ready>,
}

impl DownNetwork {
    fn is_down(&self) -> bool {
        self.down.contains(&self.clock.now_ns())
    }

    fn find_ready(&mut self) {
        let (now, is_down) = (self.clock.now_ns(), self.is_down());
        let event = |c: usize| match self.states[c] {
            SocketState::Open => {
                let readable = is_down || self.reply_at_ns[c].is_some_and(|at| at <= now);
                readable.then_some(Ready { connection: c, writable: false })
            }
            SocketState::Connecting => Some(Ready { connection: c, writable: true }),
            SocketState::Closed => None,
        };
        self.ready = (0..CONNECTIONS).filter_map(event).collect();
    }
}

impl Network for DownNetwork {
    fn connections(&self) -> usize {
        CONNECTIONS
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        self.reply_at_ns[c] = Some(self.clock.now_ns() + MS);
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        if self.is_down() {
            return Ok(0);
        }
        self.reply_at_ns[c] = None;
        into[..5].copy_from_slice(b"END\r\n");
        Ok(5)
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, c: usize) {
        (self.states[c], self.reply_at_ns[c]) = (SocketState::Closed, None);
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        self.states[c] = SocketState::Connecting;
        Ok(())
    }

    fn finish_connect(&mut self, c: usize) -> io::Result<()> {
        if self.is_down() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.states[c] = SocketState::Open;
        Ok(())
    }

    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        self.find_ready();
        if self.ready.is_empty() {
            let limit_ns = limit.due_in_ns.into_iter().fold(limit.max_ns, u64::min);
            self.clock.0.set(self.clock.now_ns() + limit_ns.clamp(1, MS / 10));
            self.find_ready();
        }
        Ok(self.ready.len())
    }

    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

fn tape() -> Tape {
    let workload = Workload {
        keys: 1,
        distribution: KeyDistribution::Constant,
        shape: KeyShape::Pattern("key".to_owned()),
        mix: parse_mix("get").expect("a mix"),
        prefill: 0.0,
        ..Workload::default()
    };
    let duration_ns = WINDOW_S * SECOND;
    let schedule = Schedule::Open { arrivals: Arrivals::Uniform, rate: RATE as f64, duration_ns };
    Tape::from_bytes(generate(&workload, &schedule, 1).expect("a tape")).expect("our own tape")
}

struct Played {
    result: RunResult,
    calls: Vec<LoggedCall>,
    ended_ns: u64,
}

impl Played {
    fn calls(&self, outcome: CallOutcome) -> u64 {
        self.calls.iter().filter(|call| call.outcome == outcome).count() as u64
    }
}

/// Play the tape with the server down from `down_ms.start` to `down_ms.end`, for at most `ops` operations and, if it
/// has an end, for as long as the tape is.
fn play(down_ms: std::ops::Range<u64>, ops: u64, has_end: bool) -> Played {
    let tape = tape();
    let clock = VirtualClock(Rc::new(Cell::new(START_NS)));
    let network = DownNetwork {
        clock: clock.clone(),
        down: START_NS + down_ms.start * MS..START_NS + down_ms.end * MS,
        states: [SocketState::Open; CONNECTIONS],
        reply_at_ns: [None; CONNECTIONS],
        ready: Vec::new(),
    };
    let end_ns = if has_end { START_NS + WINDOW_S * SECOND } else { u64::MAX / 4 };
    let window = Window { start_ns: START_NS, end_ns, timeout_ns: TIMEOUT_NS, section_ns: None };
    let lane = Lane::new(0, 1, tape.op_count(), tape.group());
    let player: Player<'_, Text> =
        Player::new(&tape, WorkSlice::Lane { lane, ops }, window, CONNECTIONS, 1).with_call_log(1);
    let (mut connections, shared) = (ThreadConnections::new(network), SharedState::default());
    let drain_end_ns = end_ns + 2 * TIMEOUT_NS;
    let event_loop = EventLoop::new(player, clock.clone(), &mut connections, &shared, drain_end_ns);
    let mut player = event_loop.run().expect("no error");
    let calls = player.take_calls().calls;
    Played { result: RunResult::of(&[player], &tape), calls, ended_ns: clock.now_ns() }
}

fn check_each_has_one_record(played: &Played, due: u64) {
    let mut records = BTreeMap::new();
    for call in &played.calls {
        *records.entry(call.record).or_insert(0) += 1;
        assert!(call.begin_ns >= START_NS && call.begin_ns + call.duration_ns <= played.ended_ns);
    }
    assert_eq!((records.len() as u64, played.calls.len() as u64), (due, due));
}

#[test]
fn an_outage_does_not_end_the_window() {
    // Three timeouts are 300 ms.
    let played = play(1000..3000, u64::MAX, true);
    check_each_has_one_record(&played, DUE);
    let lost = played.calls(CallOutcome::Failed(Failure::Connection));
    assert!(lost <= CONNECTIONS as u64, "{lost} calls were lost");
    assert_eq!(played.calls(CallOutcome::Miss), DUE - lost);
    assert_eq!(played.result.metrics.unsent, 0);
    let metrics = &played.result.metrics;
    assert_eq!((metrics.reconnects, metrics.renewed), (CONNECTIONS as u64, 0));
    assert!(metrics.failed_connects >= CONNECTIONS as u64, "{}", metrics.failed_connects);
    let late = |call: &&LoggedCall| call.begin_ns >= START_NS + 3 * SECOND;
    assert!(played.calls.iter().filter(late).count() as u64 >= 4 * RATE - 10, "2 s of calls wait");
}

#[test]
fn operations_that_are_never_sent_are_in_the_call_log() {
    let played = play(1000..u64::MAX / MS / 8, u64::MAX, true);
    check_each_has_one_record(&played, DUE);
    let (unsent, lost) =
        (played.result.metrics.unsent, played.calls(CallOutcome::Failed(Failure::Connection)));
    assert!(unsent >= 4 * RATE - 10 && (unsent..=unsent + 2).contains(&lost), "{unsent} {lost}");
    assert_eq!(played.calls(CallOutcome::Miss), DUE - lost);
}

#[test]
fn an_endless_run_is_given_up_at_its_last_operation() {
    let played = play(1000..u64::MAX / MS / 8, 3 * RATE, false);
    check_each_has_one_record(&played, 3 * RATE);
    assert!(played.ended_ns < START_NS + 4 * SECOND, "it went on until {}", played.ended_ns);
}
