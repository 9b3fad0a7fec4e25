//! A thread is paused for longer than the timeout: replies that arrived meanwhile still count.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use cachemark_load::{
    Clock, EventLoop, Failure, Network, Player, Ready, RunResult, SharedState, ThreadConnections,
    WaitLimit, Window, WorkSlice,
};
use cachemark_tape::{
    KeyDistribution, KeyShape, Lane, Schedule, Tape, Workload, generate, parse_mix,
};

const SECOND: u64 = 1_000_000_000;
const LINES: usize = 8;

#[derive(Clone)]
struct Watch(Rc<Cell<u64>>);

impl Clock for Watch {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// A network that answers on the first `answered` connections at once with a miss, and never on the
/// others. The first wait takes a simulated minute, and each wait reports only one connection, because
/// kernels may report fewer than there are.
struct PausedNetwork {
    watch: Watch,
    answered: usize,
    unread: Vec<usize>,
    slept: bool,
}

impl Network for PausedNetwork {
    fn connections(&self) -> usize {
        LINES
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        if c < self.answered {
            self.unread.push(c);
        }
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        assert_eq!(self.unread.pop(), Some(c), "only what is readable is read");
        into[..5].copy_from_slice(b"END\r\n");
        Ok(5)
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _: usize) {}

    fn start_connect(&mut self, _: usize) -> io::Result<()> {
        Err(io::ErrorKind::ConnectionRefused.into())
    }

    fn finish_connect(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        let length_ns = if self.slept { limit.max_ns } else { 60 * SECOND };
        if !self.slept || self.unread.is_empty() {
            self.watch.0.set(self.watch.now_ns() + length_ns);
        }
        self.slept = true;
        Ok(usize::from(!self.unread.is_empty()))
    }

    fn ready(&self, _: usize) -> Ready {
        let connection = *self.unread.last().expect("a line that is ready");
        Ready { connection, writable: false }
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
    let bytes = generate(&workload, &Schedule::closed(LINES as u64), 1).expect("a tape");
    Tape::from_bytes(bytes).expect("our own tape")
}

/// One get per connection, with a timeout of a second. Returns misses and timeouts.
fn play(answered: usize, window_ns: u64) -> (u64, u64) {
    let tape = tape();
    let watch = Watch(Rc::new(Cell::new(SECOND)));
    let network = PausedNetwork { watch: watch.clone(), answered, unread: vec![], slept: false };
    let end_ns = SECOND + window_ns;
    let window = Window { start_ns: SECOND, end_ns, timeout_ns: SECOND, section_ns: None };
    let lane = Lane::new(0, 1, tape.op_count(), tape.group());
    let share = WorkSlice::Lane { lane, ops: LINES as u64 };
    let player = Player::<cachemark_load::Text>::new(&tape, share, window, LINES, 1);
    let (mut connections, shared) = (ThreadConnections::new(network), SharedState::default());
    let drained_ns = end_ns + 2 * SECOND;
    let played = EventLoop::new(player, watch, &mut connections, &shared, drained_ns).run();
    let result = RunResult::of(&[played.expect("no error")], &tape);
    let (_, gets) = result.metrics.kinds().next().expect("gets");
    assert_eq!(gets.ok + gets.errors.iter().sum::<u64>(), LINES as u64, "{:?}", gets.errors);
    assert!(gets.response.min() >= 60 * SECOND - SECOND / 10, "the sleep is in the times");
    (gets.misses, gets.errors[Failure::Timeout as usize])
}

#[test]
fn replies_that_arrived_during_a_pause_are_not_timeouts() {
    assert_eq!(play(LINES, 600 * SECOND), (LINES as u64, 0));
}

#[test]
fn an_unanswered_operation_is_still_a_timeout() {
    assert_eq!(play(3, 600 * SECOND), (3, LINES as u64 - 3));
}

#[test]
fn replies_count_after_a_pause_over_the_windows_end() {
    assert_eq!(play(LINES, SECOND), (LINES as u64, 0));
    assert_eq!(play(3, SECOND), (3, LINES as u64 - 3));
}
