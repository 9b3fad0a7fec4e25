//! A clock and a server that are scripts. No time passes but in `wait`, which jumps to the next
//! instant at which something happens; so minutes take milliseconds and every figure is exact.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::rc::Rc;

use cachemark_load::{Clock, Network, Ready, WaitLimit};
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};
use cachemark_tape::Tape;

use crate::script::{Fate, Request, Script};
use crate::truth::{End, Truth};

/// Instant 0 stands for "not yet" in places, so that virtual time begins later.
const START_NS: u64 = 1_000_000_000;

/// The wall clock of this world is set forth and back by a second, by turns, this often.
const WALL_STEP_NS: u64 = 1_000_000_000;
const WALL_SET_EVERY_NS: u64 = 3_000_000_000;

/// A clock that stands still until it is set.
#[derive(Clone)]
pub struct VirtualClock(Rc<Cell<u64>>);

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn wall_ns(&self) -> u64 {
        let now_ns = self.now_ns();
        now_ns + WALL_STEP_NS * (now_ns / WALL_SET_EVERY_NS % 2)
    }
}

/// The program under test does not run during the first `length_ns` of each period.
#[derive(Clone, Copy, Debug)]
pub struct Freeze {
    pub length_ns: u64,
    pub period_ns: u64,
}

/// A part of a reply on its way, by the instant at which it comes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    at_ns: u64,
    order: u64,
    connection: usize,
    epoch: u64,
    bytes: Vec<u8>,
    /// The request that is answered with it.
    completes: Option<(usize, End)>,
}

/// One connection from the server's end.
#[derive(Default)]
struct Line {
    /// How often it was closed: what was on its way to an older one is lost.
    epoch: u64,
    /// The instant of the last reply: those after it come no earlier.
    last_ns: u64,
    /// Of a request that is not whole.
    unparsed: Vec<u8>,
    arrived: VecDeque<u8>,
    /// Requests that are not answered.
    outstanding: VecDeque<usize>,
    /// Those whose whole answer has arrived and is not read.
    answered: Vec<(usize, End)>,
}

pub struct World<'tape> {
    clock: VirtualClock,
    tape: &'tape Tape,
    script: Script,
    lines: Vec<Line>,
    coming: BinaryHeap<Reverse<Part>>,
    ready: Vec<Ready>,
    opening: Vec<usize>,
    freeze: Option<Freeze>,
    /// What a read or a write costs the program under test.
    call_ns: u64,
    parts: u64,
    numbers: u64,
    /// When the window began, from which the tape's instants count.
    window_ns: u64,
    /// What came in and what became of it.
    pub truth: Truth,
}

impl<'tape> World<'tape> {
    /// So many open connections to a server that follows a script and knows the tape's values.
    pub fn new(
        tape: &'tape Tape,
        connections: usize,
        script: Script,
        freeze: Option<Freeze>,
        timeout_ns: u64,
    ) -> World<'tape> {
        World {
            clock: VirtualClock(Rc::new(Cell::new(START_NS))),
            tape,
            script,
            lines: (0..connections).map(|_| Line::default()).collect(),
            coming: BinaryHeap::new(),
            ready: Vec::new(),
            opening: Vec::new(),
            freeze,
            call_ns: 0,
            parts: 0,
            numbers: 0,
            window_ns: START_NS,
            truth: Truth::new(timeout_ns),
        }
    }

    /// Each read and each write takes the program so long.
    pub fn with_calls_of(self, call_ns: u64) -> World<'tape> {
        World { call_ns, ..self }
    }

    fn spend(&self, ns: u64) {
        self.clock.0.set(self.clock.now_ns() + ns);
    }

    /// A window begins: what was before is not part of its truth.
    pub fn begin_window(&mut self, start_ns: u64) {
        self.window_ns = start_ns;
        self.truth.begin(start_ns);
    }

    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// Take one request from the front of a connection's bytes; false when none is whole.
    fn take(&mut self, c: usize) -> bool {
        let bytes = std::mem::take(&mut self.lines[c].unparsed);
        let mut replies = Vec::new();
        let used = match parse(&bytes) {
            Parsed::Incomplete => 0,
            Parsed::Command(Command::Version, length) => {
                // The barrier is no operation: answered at once, behind what is outstanding.
                let at_ns = self.clock.now_ns().max(self.lines[c].last_ns);
                replies.push((at_ns, b"VERSION scripted\r\n".to_vec(), None));
                length
            }
            Parsed::Command(Command::Get { mut keys, .. }, length) => {
                let key = keys.next().expect("a key");
                self.serve(c, key, &mut replies);
                length
            }
            other => panic!("the scripted server knows get and version, not {other:?}"),
        };
        self.lines[c].unparsed = bytes;
        self.lines[c].unparsed.drain(..used);
        for (at_ns, bytes, completes) in replies {
            self.reply(c, at_ns, bytes, completes);
        }
        used > 0
    }

    fn serve(&mut self, c: usize, key: &[u8], replies: &mut Vec<Reply>) {
        let now_ns = self.clock.now_ns();
        let at_ns = now_ns - START_NS;
        let fate = (self.script)(&Request { number: self.numbers, at_ns });
        self.numbers += 1;
        let record = record_of(key);
        let due_ns = self.tape.is_open_loop().then(|| self.window_ns + self.tape.due_ns(record));
        let request = self.truth.came(due_ns, now_ns);
        self.lines[c].outstanding.push_back(request);
        let k = record as u32;
        let right = || value_block(self.tape, k, k);
        let mut whole = |at_ns: u64, bytes, end| {
            replies.push((START_NS + at_ns, bytes, Some((request, end))));
        };
        match fate {
            Fate::At(at_ns) => whole(at_ns, right(), End::Answered),
            Fate::Never => {}
            Fate::WrongKey(at_ns) => {
                whole(at_ns, value_block(self.tape, k ^ 1, k ^ 1), End::Wrong);
            }
            Fate::WrongValue(at_ns) => whole(at_ns, value_block(self.tape, k, k ^ 1), End::Wrong),
            Fate::InHalves(first_ns, last_ns) => {
                let mut head = right();
                let tail = head.split_off(head.len() / 2);
                replies.push((START_NS + first_ns, head, None));
                replies.push((START_NS + last_ns, tail, Some((request, End::Answered))));
            }
        }
    }

    fn reply(&mut self, c: usize, at_ns: u64, bytes: Vec<u8>, completes: Option<(usize, End)>) {
        let line = &mut self.lines[c];
        line.last_ns = at_ns.max(line.last_ns);
        self.parts += 1;
        self.coming.push(Reverse(Part {
            at_ns: line.last_ns,
            order: self.parts,
            connection: c,
            epoch: line.epoch,
            bytes,
            completes,
        }));
    }

    /// The instant at which a program that is to run at `at_ns` does.
    fn unfrozen(&self, at_ns: u64) -> u64 {
        let Some(Freeze { length_ns, period_ns }) = self.freeze else { return at_ns };
        let phase = (at_ns - START_NS) % period_ns;
        if phase < length_ns { at_ns - phase + length_ns } else { at_ns }
    }

    /// What has come by now is there to be read.
    fn deliver(&mut self) {
        let now_ns = self.clock.now_ns();
        while self.coming.peek().is_some_and(|Reverse(part)| part.at_ns <= now_ns) {
            let Some(Reverse(part)) = self.coming.pop() else { return };
            let line = &mut self.lines[part.connection];
            if line.epoch != part.epoch {
                continue;
            }
            if line.arrived.is_empty() {
                self.ready.push(Ready { connection: part.connection, writable: false });
            }
            line.arrived.extend(part.bytes);
            if let Some((request, end)) = part.completes {
                line.outstanding.pop_front();
                line.answered.push((request, end));
            }
        }
    }
}

impl Network for World<'_> {
    fn connections(&self) -> usize {
        self.lines.len()
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        self.lines[c].unparsed.extend_from_slice(bytes);
        while self.take(c) {}
        self.spend(self.call_ns);
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        if self.lines[c].arrived.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.spend(self.call_ns);
        let now_ns = self.clock.now_ns();
        let line = &mut self.lines[c];
        let read = io::Read::read(&mut line.arrived, into);
        if line.arrived.is_empty() {
            let answered = line.answered.drain(..);
            answered.for_each(|(request, end)| self.truth.ended(request, end, now_ns));
        }
        read
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(()) // everything is always written whole
    }

    fn close(&mut self, c: usize) {
        let now_ns = self.clock.now_ns();
        let line = &mut self.lines[c];
        let unread = line.answered.drain(..).map(|(request, _)| request);
        self.truth.closed(unread.chain(line.outstanding.drain(..)), now_ns);
        *line = Line { epoch: line.epoch + 1, ..Line::default() };
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        self.opening.push(c);
        Ok(())
    }

    fn finish_connect(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, nap: WaitLimit) -> io::Result<usize> {
        let now_ns = self.clock.now_ns();
        self.ready.retain(|ready| !self.lines[ready.connection].arrived.is_empty());
        let nap_ns = nap.due_in_ns.into_iter().fold(nap.max_ns, u64::min);
        let coming = self.coming.peek().map(|Reverse(part)| part.at_ns);
        let busy = !self.ready.is_empty() || !self.opening.is_empty();
        let wake_ns =
            if busy { now_ns } else { coming.into_iter().fold(now_ns + nap_ns, u64::min) };
        self.clock.0.set(self.unfrozen(wake_ns.max(now_ns)));
        for c in std::mem::take(&mut self.opening) {
            self.ready.push(Ready { connection: c, writable: true });
        }
        self.deliver();
        Ok(self.ready.len())
    }

    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

type Reply = (u64, Vec<u8>, Option<(usize, End)>);

/// The reply to a get of a key that is there; `k` names it, `of` is whose value it is.
fn value_block(tape: &Tape, k: u32, of: u32) -> Vec<u8> {
    let value = tape.value(of, tape.value_length(k));
    let key = tape.key(k);
    let mut block = Vec::with_capacity(key.len() + value.len() + 24);
    block.extend_from_slice(b"VALUE ");
    block.extend_from_slice(key);
    block.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
    block.extend_from_slice(value);
    block.extend_from_slice(b"\r\nEND\r\n");
    block
}

/// The tapes of these cases name their keys by record: `k0`, `k1` …
fn record_of(key: &[u8]) -> u64 {
    key[1..].iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}
