//! The native client against a server that says anything: the window ends, and every operation that
//! was begun is counted once, as done or as failed.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::OnceLock;

use cachemark_load::{
    Binary, Clock, EventLoop, Meta, Network, Player, Ready, SharedState, Text, ThreadConnections,
    WaitLimit, Window, Wire, WorkSlice,
};
use cachemark_server::{Session, State};
use cachemark_tape::{
    IntegerRange, KeyDistribution, KeyShape, Lane, Schedule, Tape, Workload, generate, parse_mix,
};

use crate::connections::{Piece, bytes, pieces};
use crate::session::{self, hear};

const CONNECTIONS: usize = 2;
const DEPTH: usize = 3;
const OPS: u64 = 40;
const MS: u64 = 1_000_000;
const START_NS: u64 = 1000 * MS;
const WINDOW_NS: u64 = 200 * MS;
const TIMEOUT_NS: u64 = 50 * MS;
const PIECE_NS: u64 = 1000;

fn tape() -> &'static Tape {
    static TAPE: OnceLock<Tape> = OnceLock::new();
    TAPE.get_or_init(|| {
        let mix = "get=4,gets=1,mget=2,set=2,set_noreply=1,add=1,mset=1,cas=2,incr=1,\
                   delete=1,delete_noreply=1,touch=1,gat=1,version=1,fetch=1";
        let workload = Workload {
            keys: 6,
            counters: 1,
            distribution: KeyDistribution::Uniform,
            shape: KeyShape::Pattern("k{index}".to_owned()),
            size: IntegerRange { low: 0, high: 9 }.into(),
            mix: parse_mix(mix).expect("a mix"),
            run: 3,
            prefill: 0.5,
            ..Workload::default()
        };
        let bytes = generate(&workload, &Schedule::closed(OPS), 1).expect("a tape");
        Tape::from_bytes(bytes).expect("our own tape")
    })
}

#[derive(Clone)]
struct Instant(Rc<Cell<u64>>);

impl Clock for Instant {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

#[derive(Default)]
struct Line {
    /// The client has it open: what comes to one that is closed is lost.
    open: bool,
    arrived: VecDeque<u8>,
    /// The server has closed it.
    ended: bool,
    session: Session,
    asked: Vec<u8>,
}

/// Who answers: nobody but the pieces, or a server that does it rightly.
struct World<'a> {
    clock: Instant,
    lines: Vec<Line>,
    coming: VecDeque<Piece<'a>>,
    opening: Vec<usize>,
    ready: Vec<Ready>,
    server: Option<State>,
    /// What that server said.
    said: Said,
}

impl World<'_> {
    /// The next piece comes; an empty one is the end of its connection.
    fn deliver(&mut self) -> bool {
        let Some((number, piece)) = self.coming.pop_front() else { return false };
        let line = &mut self.lines[number % CONNECTIONS];
        if line.open {
            line.ended |= piece.is_empty();
            line.arrived.extend(piece);
        }
        true
    }

    fn look(&mut self) {
        let opened = self.opening.drain(..).map(|c| Ready { connection: c, writable: true });
        self.ready = opened.collect();
        for (c, line) in self.lines.iter().enumerate() {
            if line.ended || !line.arrived.is_empty() {
                self.ready.push(Ready { connection: c, writable: false });
            }
        }
    }
}

impl Network for World<'_> {
    fn connections(&self) -> usize {
        self.lines.len()
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let line = &mut self.lines[c];
        if let Some(server) = &self.server {
            line.asked.extend_from_slice(bytes);
            let (said, _) = hear(&mut line.session, &mut line.asked, server);
            line.arrived.extend(&said);
            self.said.push((c, said));
        }
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let line = &mut self.lines[c];
        if line.arrived.is_empty() && !line.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        io::Read::read(&mut line.arrived, into)
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, c: usize) {
        self.lines[c] = Line::default();
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        self.opening.push(c);
        Ok(())
    }

    fn finish_connect(&mut self, c: usize) -> io::Result<()> {
        self.lines[c].open = true;
        Ok(())
    }

    fn wait(&mut self, nap: WaitLimit) -> io::Result<usize> {
        self.look();
        if self.ready.is_empty() {
            let nap_ns = nap.due_in_ns.into_iter().fold(nap.max_ns, u64::min);
            let passed_ns = if self.deliver() { PIECE_NS } else { nap_ns.max(1) };
            self.clock.0.set(self.clock.now_ns() + passed_ns);
            self.look();
        }
        Ok(self.ready.len())
    }

    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

/// What a server said, and on which connection.
type Said = Vec<(usize, Vec<u8>)>;

fn play<W: Wire>(coming: Vec<Piece<'_>>, server: Option<State>) -> Said {
    let clock = Instant(Rc::new(Cell::new(START_NS)));
    let world = World {
        clock: clock.clone(),
        lines: (0..CONNECTIONS).map(|_| Line { open: true, ..Line::default() }).collect(),
        coming: coming.into(),
        opening: Vec::new(),
        ready: Vec::new(),
        server,
        said: Vec::new(),
    };
    let tape = tape();
    let share = WorkSlice::Lane { lane: Lane::new(0, 1, tape.op_count(), tape.group()), ops: OPS };
    let end_ns = START_NS + WINDOW_NS;
    let window = Window { start_ns: START_NS, end_ns, timeout_ns: TIMEOUT_NS, section_ns: None };
    let player: Player<'_, W> = Player::new(tape, share, window, CONNECTIONS, DEPTH);
    let mut connections = ThreadConnections::new(world);
    let drain_end_ns = end_ns + 2 * TIMEOUT_NS;
    let shared = SharedState::default();
    let played =
        EventLoop::new(player, clock.clone(), &mut connections, &shared, drain_end_ns).run();
    let played = played.expect("no network fails here");
    assert!(clock.now_ns() <= drain_end_ns + 100 * MS, "it went on until {}", clock.now_ns());
    let (mut attempts, mut hits, mut keys) = (0, 0, 0);
    for (name, kind) in played.metrics().kinds() {
        assert_eq!(kind.attempts, kind.ok + kind.failed(), "{name}: {kind:?}");
        attempts += kind.attempts;
        hits += kind.hits + kind.misses;
        keys += kind.keys;
    }
    assert!(attempts <= OPS && hits <= keys, "{attempts} {hits} {keys}");
    connections.into_network().said
}

/// Play the window against a server that says these pieces; the first byte tells the protocol.
pub fn counts_everything_once(bytes: &[u8]) {
    let Some((wire, rest)) = bytes.split_first() else { return };
    match wire % 3 {
        0 => play::<Text>(pieces(rest), None),
        1 => play::<Meta>(pieces(rest), None),
        _ => play::<Binary>(pieces(rest), None),
    };
}

/// What a server that does everything right says, as such bytes.
pub fn right_answers() -> Vec<Vec<u8>> {
    let players: [fn() -> Said; 3] = [
        || play::<Text>(Vec::new(), Some(session::empty())),
        || play::<Meta>(Vec::new(), Some(session::empty())),
        || play::<Binary>(Vec::new(), Some(session::empty())),
    ];
    let answers = (0_u8..).zip(players).map(|(wire, play)| {
        let said = play();
        let said = said.iter().flat_map(|(c, said)| said.chunks(255).map(move |part| (*c, part)));
        let mut out = vec![wire];
        out.extend(bytes(&said.collect::<Vec<_>>()));
        out
    });
    answers.collect()
}
