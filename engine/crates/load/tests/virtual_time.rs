//! The player in virtual time: exact answers, no clock, no socket.
//!
//! The server is a script: it answers request n on a connection at an instant that the script
//! computes. The world jumps from one instant at which something happens to the next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use cachemark_load::{KindTally, Player, Share, Tally, Window};
use cachemark_tape::{
    Distribution, KeyShape, Lane, Order, Schedule, Span, Tape, Workload, generate, parse_mix,
};

const MS: u64 = 1_000_000;
const US: u64 = 1_000;
const SECOND: u64 = 1_000 * MS;
/// Instant 0 stands for "never" in places, so virtual time begins later.
const START: u64 = SECOND;

/// When a request that arrives is answered; `None`: never.
type Script = Box<dyn FnMut(u64, u64) -> Option<u64>>;

struct World<'tape> {
    player: Player<'tape>,
    connections: usize,
    now: u64,
    end: u64,
    script: Script,
    requests: u64,
    replies: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Each connection answers in order.
    last_reply: Vec<u64>,
    /// How often each connection has been reopened; older replies are lost with their socket.
    epoch: Vec<u64>,
    epochs: VecDeque<(u64, u64)>,
}

fn tape(mix: &str, schedule: Schedule) -> Tape {
    let workload = Workload {
        keys: 10,
        distribution: Distribution::Uniform,
        shape: KeyShape::Length(Span { low: 8, high: 8 }),
        size: Span { low: 0, high: 0 },
        compressibility: 0.0,
        mix: parse_mix(mix).expect("a mix"),
        run: 1,
        prefill: 0.0,
        exptime_s: 0,
        order: Order::Mixed,
        counters: 0,
    };
    let bytes = generate(&workload, &schedule, 1).expect("a tape");
    Tape::from_bytes(bytes).expect("our own tape")
}

fn play(
    tape: &Tape,
    connections: usize,
    depth: usize,
    length: u64,
    timeout: u64,
    script: impl FnMut(u64, u64) -> Option<u64> + 'static,
) -> (Tally, u64) {
    let share = Share::Lane { lane: Lane::new(0, 1, tape.op_count(), 1), ops: u64::MAX };
    let window = Window { start_ns: START, end_ns: START + length, timeout_ns: timeout };
    let world = World {
        player: Player::new(tape, share, window, connections, depth),
        connections,
        now: START,
        end: window.end_ns,
        script: Box::new(script),
        requests: 0,
        replies: BinaryHeap::new(),
        last_reply: vec![0; connections],
        epoch: vec![0; connections],
        epochs: VecDeque::new(),
    };
    world.run()
}

impl World<'_> {
    fn run(mut self) -> (Tally, u64) {
        loop {
            self.player.issue(self.now);
            self.player.close_quiet(self.now);
            self.send();
            if self.player.finished(self.now) {
                let (elapsed, _) = self.player.elapsed_ns();
                return (self.player.tally, elapsed);
            }
            self.now = self.next_instant();
            self.receive();
            self.expire();
        }
    }

    /// The bytes that go out are `get key\r\n` each; the server sees them at once.
    fn send(&mut self) {
        for c in 0..self.connections {
            if !self.player.has_outgoing(c) {
                continue;
            }
            let bytes = self.player.outgoing(c, self.now);
            let count = bytes.iter().filter(|byte| **byte == b'\n').count();
            let length = bytes.len();
            self.player.wrote(c, length, self.now);
            for _ in 0..count {
                let answer = (self.script)(self.requests, self.now);
                self.requests += 1;
                let Some(at) = answer else { continue };
                let at = at.max(self.last_reply[c]);
                self.last_reply[c] = at;
                let id = self.epochs.len() as u64;
                self.epochs.push_back((id, self.epoch[c]));
                self.replies.push(Reverse((at, id, c)));
            }
        }
    }

    fn next_instant(&self) -> u64 {
        let reply = self.replies.peek().map(|Reverse((at, _, _))| *at);
        let due = self.player.next_due_ns();
        let timeout = self.player.next_timeout_ns();
        let next = [reply, due, timeout].into_iter().flatten().min();
        next.unwrap_or(self.end).max(self.now)
    }

    fn receive(&mut self) {
        while let Some(Reverse((at, id, c))) = self.replies.peek().copied() {
            if at > self.now {
                return;
            }
            self.replies.pop();
            if self.epochs[id as usize].1 != self.epoch[c] {
                continue;
            }
            let reply = b"END\r\n";
            self.player.incoming(c)[..reply.len()].copy_from_slice(reply);
            self.player.read(c, reply.len(), self.now).expect("a reply to an operation");
        }
    }

    fn expire(&mut self) {
        let mut lost = Vec::new();
        self.player.expire(self.now, |c| lost.push(c));
        for c in lost {
            self.epoch[c] += 1;
            self.last_reply[c] = 0;
            self.player.restored(c);
        }
    }
}

fn get(tally: &Tally) -> KindTally {
    tally.kinds().find(|(name, _)| *name == "get").expect("gets").1.clone()
}

/// A quantile of the response time in ns.
fn response(tally: &Tally, percent: f64) -> u64 {
    get(tally).response.value_at_percentile(percent)
}

/// Within one bucket of the histogram: 0.1 %.
#[track_caller]
fn close(actual: u64, expected: u64, slack: u64) {
    let tolerance = expected / 1000 + slack;
    assert!(actual.abs_diff(expected) <= tolerance, "{actual} is not {expected} ± {tolerance}");
}

fn uniform(rate: f64, seconds: u64) -> Schedule {
    Schedule::Uniform { rate, duration_ns: seconds * SECOND }
}

#[test]
fn a_constant_delay_is_every_quantile() {
    let tape = tape("get", uniform(10_000.0, 6));
    let (tally, _) = play(&tape, 64, 16, 6 * SECOND, SECOND, |_, now| Some(now + MS));
    assert_eq!(get(&tally).ok, 60_000);
    for percent in [0.0, 50.0, 99.0, 99.99, 100.0] {
        close(response(&tally, percent), MS, 0);
    }
}

#[test]
fn a_stall_shows_in_the_tail_of_an_open_loop() {
    // 100 ms of stall each second, drained at once: q_p = c + S − (1 − p)·P above p = 0.9.
    let tape = tape("get", uniform(10_000.0, 60));
    let stalled = |_, now: u64| {
        let phase = (now - START) % SECOND;
        Some(if phase < 100 * MS { now - phase + 100 * MS } else { now } + 50 * US)
    };
    let (tally, _) = play(&tape, 64, 64, 60 * SECOND, 10 * SECOND, stalled);
    close(response(&tally, 50.0), 50 * US, 0);
    close(response(&tally, 89.9), 50 * US, 0);
    for (percent, expected) in [(95.0, 50), (99.0, 90), (99.9, 99), (100.0, 100)] {
        close(response(&tally, percent), expected * MS, 150 * US);
    }
}

#[test]
fn connections_that_bind_are_charged_and_told() {
    // The same stall with room for 64 operations only: the rest waits in the client.
    let tape = tape("get", uniform(10_000.0, 60));
    let stalled = |_, now: u64| {
        let phase = (now - START) % SECOND;
        Some(if phase < 100 * MS { now - phase + 100 * MS } else { now } + 50 * US)
    };
    let (tally, _) = play(&tape, 64, 1, 60 * SECOND, 10 * SECOND, stalled);
    assert!(tally.bound > 0);
    assert_eq!(tally.max_in_flight, 64);
    close(response(&tally, 99.0), 90 * MS, 2 * MS);
    let service = get(&tally).service.value_at_percentile(99.0);
    assert!(service < 90 * MS, "the send stamp hides the wait: {service}");
}

#[test]
fn one_long_stall_reaches_the_maximum() {
    // One stall of 2 s in 60 s at 1 000/s: q_p = S − (1 − p)·T above p = 1 − S/T.
    let tape = tape("get", uniform(1_000.0, 60));
    let stalled = |_, now: u64| {
        let at = now - START;
        let end = 32 * SECOND;
        Some(START + if (30 * SECOND..end).contains(&at) { end } else { at } + 10 * US)
    };
    let (tally, _) = play(&tape, 64, 4096, 60 * SECOND, 10 * SECOND, stalled);
    for (percent, expected) in [(97.0, 200), (99.0, 1400), (99.9, 1940), (100.0, 2000)] {
        close(response(&tally, percent), expected * MS, MS + MS / 10);
    }
}

#[test]
fn what_is_in_flight_at_the_end_is_not_dropped() {
    // A stall from 9.5 s to 11.5 s in a window of 10 s.
    let tape = tape("get", uniform(1_000.0, 10));
    let stalled = |_, now: u64| {
        let at = now - START;
        let begin = 9 * SECOND + 500 * MS;
        Some(START + if at >= begin { begin + 2 * SECOND } else { at } + 10 * US)
    };
    let (tally, _) = play(&tape, 64, 4096, 10 * SECOND, 10 * SECOND, stalled);
    assert_eq!(get(&tally).ok, 10_000);
    close(response(&tally, 99.0), 1900 * MS, MS + MS / 10);
    close(response(&tally, 94.9), 10 * US, 0);
}

#[test]
fn a_fast_majority_is_not_corrected_upwards() {
    // Independent 1 % of 100 ms: p98.5 stays at 1 ms.
    let tape = tape("get", uniform(10_000.0, 10));
    let bimodal = |request: u64, now: u64| {
        Some(now + if request.is_multiple_of(100) { 100 * MS } else { MS })
    };
    let (tally, _) = play(&tape, 200, 1, 10 * SECOND, SECOND, bimodal);
    close(response(&tally, 98.5), MS, 0);
    close(response(&tally, 99.5), 100 * MS, 0);
}

#[test]
fn a_closed_loop_obeys_littles_law() {
    // 16 callers, one server of 100 µs: X = 10 000/s, R = 1.6 ms.
    let tape = tape("get", Schedule::Closed { ops: 1000 });
    let mut free_at = 0;
    let queue = move |_, now: u64| {
        free_at = now.max(free_at) + 100 * US;
        Some(free_at)
    };
    let (tally, elapsed) = play(&tape, 16, 1, 10 * SECOND, SECOND, queue);
    let rate = get(&tally).ok as f64 / elapsed as f64 * 1e9;
    assert!((rate / 10_000.0 - 1.0).abs() < 0.001, "{rate}");
    close(response(&tally, 50.0), 1600 * US, 0);
}

#[test]
fn timeouts_are_counted_and_stay_in_the_tail() {
    // 1 % is never answered; each has a connection to itself, so no other operation suffers.
    let tape = tape("get", uniform(1_000.0, 100));
    let dropped = |request: u64, now: u64| (!request.is_multiple_of(100)).then_some(now + MS);
    let (tally, _) = play(&tape, 50, 1, 100 * SECOND, 250 * MS, dropped);
    let gets = get(&tally);
    assert_eq!(gets.errors[0], 1000, "timeouts");
    assert_eq!(gets.errors[1..], [0; 4]);
    assert_eq!((gets.attempts, gets.ok), (100_000, 99_000));
    assert_eq!(tally.reconnects, 1000);
    close(response(&tally, 98.9), MS, 0);
    close(response(&tally, 99.5), 250 * MS, 0);
}

#[test]
fn response_is_lag_and_service() {
    // One connection of depth 1 and an overloaded server: most of the response is waiting.
    let tape = tape("get", uniform(2_000.0, 5));
    let (tally, _) = play(&tape, 1, 1, 5 * SECOND, 100 * SECOND, |_, now| Some(now + MS));
    let gets = get(&tally);
    assert_eq!(gets.ok, 10_000);
    let mean = gets.response.mean();
    let sum = tally.lag.mean() + gets.service.mean();
    assert!((mean / sum - 1.0).abs() < 0.002, "{mean} {sum}");
    // Half the rate is served: the last operation has waited as long as the window.
    close(response(&tally, 100.0), 5 * SECOND, 10 * MS);
}

#[test]
fn a_number_of_operations_ends_a_window() {
    let tape = tape("get", Schedule::Closed { ops: 7 });
    let share = Share::Lane { lane: Lane::new(0, 1, 7, 1), ops: 100 };
    let window = Window { start_ns: START, end_ns: u64::MAX / 4, timeout_ns: SECOND };
    let world = World {
        player: Player::new(&tape, share, window, 2, 3),
        connections: 2,
        now: START,
        end: window.end_ns,
        script: Box::new(|_, now| Some(now + MS)),
        requests: 0,
        replies: BinaryHeap::new(),
        last_reply: vec![0; 2],
        epoch: vec![0; 2],
        epochs: VecDeque::new(),
    };
    let (tally, _) = world.run();
    assert_eq!(get(&tally).ok, 100);
    assert_eq!(tally.max_in_flight, 6);
}
