//! The native client against a server that sends any bytes: the window ends, and every operation that
//! was attempted is counted once, as successful or as failed.

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
use crate::session::{self, feed_all};

const CONNECTIONS: usize = 2;
const DEPTH: usize = 3;
const OPS: u64 = 40;
const MS: u64 = 1_000_000;
const START_NS: u64 = 1000 * MS;
const WINDOW_NS: u64 = 200 * MS;
const TIMEOUT_NS: u64 = 50 * MS;
const PIECE_GAP_NS: u64 = 1000;

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
struct SimulatedClock(Rc<Cell<u64>>);

impl Clock for SimulatedClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

#[derive(Default)]
struct SimulatedConnection {
    /// The client has opened it. Input of a closed connection is lost.
    open: bool,
    arrived: VecDeque<u8>,
    /// The server has closed the connection.
    ended: bool,
    session: Session,
    unparsed: Vec<u8>,
}

/// The replies are pieces of any bytes, or come from a real server.
struct SimulatedNetwork<'a> {
    clock: SimulatedClock,
    connections: Vec<SimulatedConnection>,
    pieces_to_come: VecDeque<Piece<'a>>,
    opening: Vec<usize>,
    ready: Vec<Ready>,
    server: Option<State>,
    /// The replies of that server.
    replies: Replies,
}

impl SimulatedNetwork<'_> {
    /// Deliver the next piece. An empty one ends its connection.
    fn deliver(&mut self) -> bool {
        let Some((number, piece)) = self.pieces_to_come.pop_front() else { return false };
        let connection = &mut self.connections[number % CONNECTIONS];
        if connection.open {
            connection.ended |= piece.is_empty();
            connection.arrived.extend(piece);
        }
        true
    }

    fn find_ready(&mut self) {
        let opened = self.opening.drain(..).map(|c| Ready { connection: c, writable: true });
        self.ready = opened.collect();
        for (c, connection) in self.connections.iter().enumerate() {
            if connection.ended || !connection.arrived.is_empty() {
                self.ready.push(Ready { connection: c, writable: false });
            }
        }
    }
}

impl Network for SimulatedNetwork<'_> {
    fn connections(&self) -> usize {
        self.connections.len()
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize> {
        let connection = &mut self.connections[c];
        if let Some(server) = &self.server {
            connection.unparsed.extend_from_slice(bytes);
            let (replies, _) = feed_all(&mut connection.session, &mut connection.unparsed, server);
            connection.arrived.extend(&replies);
            self.replies.push((c, replies));
        }
        Ok(bytes.len())
    }

    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize> {
        let connection = &mut self.connections[c];
        if connection.arrived.is_empty() && !connection.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        io::Read::read(&mut connection.arrived, into)
    }

    fn watch_writable(&mut self, _: usize, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, c: usize) {
        self.connections[c] = SimulatedConnection::default();
    }

    fn start_connect(&mut self, c: usize) -> io::Result<()> {
        self.opening.push(c);
        Ok(())
    }

    fn finish_connect(&mut self, c: usize) -> io::Result<()> {
        self.connections[c].open = true;
        Ok(())
    }

    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize> {
        self.find_ready();
        if self.ready.is_empty() {
            let limit_ns = limit.due_in_ns.into_iter().fold(limit.max_ns, u64::min);
            let passed_ns = if self.deliver() { PIECE_GAP_NS } else { limit_ns.max(1) };
            self.clock.0.set(self.clock.now_ns() + passed_ns);
            self.find_ready();
        }
        Ok(self.ready.len())
    }

    fn ready(&self, n: usize) -> Ready {
        self.ready[n]
    }
}

/// The replies of a server, each with its connection.
type Replies = Vec<(usize, Vec<u8>)>;

fn play<W: Wire>(pieces_to_come: Vec<Piece<'_>>, server: Option<State>) -> Replies {
    let clock = SimulatedClock(Rc::new(Cell::new(START_NS)));
    let network = SimulatedNetwork {
        clock: clock.clone(),
        connections: (0..CONNECTIONS)
            .map(|_| SimulatedConnection { open: true, ..SimulatedConnection::default() })
            .collect(),
        pieces_to_come: pieces_to_come.into(),
        opening: Vec::new(),
        ready: Vec::new(),
        server,
        replies: Vec::new(),
    };
    let tape = tape();
    let work_slice =
        WorkSlice::Lane { lane: Lane::new(0, 1, tape.op_count(), tape.group()), ops: OPS };
    let end_ns = START_NS + WINDOW_NS;
    let window = Window { start_ns: START_NS, end_ns, timeout_ns: TIMEOUT_NS, section_ns: None };
    let player: Player<'_, W> = Player::new(tape, work_slice, window, CONNECTIONS, DEPTH);
    let mut connections = ThreadConnections::new(network);
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
    connections.into_network().replies
}

/// Play a window against a server that sends these bytes in pieces. The first byte selects the protocol.
pub fn counts_every_operation_once(bytes: &[u8]) {
    let Some((wire, rest)) = bytes.split_first() else { return };
    match wire % 3 {
        0 => play::<Text>(pieces(rest), None),
        1 => play::<Meta>(pieces(rest), None),
        _ => play::<Binary>(pieces(rest), None),
    };
}

/// The replies of a real server, in the form that `counts_every_operation_once` reads.
pub fn valid_replies() -> Vec<Vec<u8>> {
    let players: [fn() -> Replies; 3] = [
        || play::<Text>(Vec::new(), Some(session::empty())),
        || play::<Meta>(Vec::new(), Some(session::empty())),
        || play::<Binary>(Vec::new(), Some(session::empty())),
    ];
    let answers = (0_u8..).zip(players).map(|(wire, play)| {
        let replies = play();
        let replies =
            replies.iter().flat_map(|(c, replies)| replies.chunks(255).map(move |part| (*c, part)));
        let mut out = vec![wire];
        out.extend(bytes(&replies.collect::<Vec<_>>()));
        out
    });
    answers.collect()
}
