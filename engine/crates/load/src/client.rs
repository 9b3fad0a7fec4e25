//! The native client as a whole: threads, their sockets, and the phases of a trial.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cachemark_tape::{Op, Tape, Verb};

use crate::access::Credentials;
use crate::clock::Monotonic;
use crate::event_loop::Shared;
use crate::intervals::{Interval, Intervals};
use crate::io::Io;
use crate::lanes::{self, Lanes, Phase};
use crate::outside::Clock;
use crate::player::Player;
use crate::sections::{SECTIONS, Sections};
use crate::share::Window;
use crate::socket::Address;
use crate::spread::{Hashing, Spread};
use crate::tally::Tally;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use crate::udp;
use crate::wire::{Wire, WireName};

/// How the client is set up.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Several: keys are spread over them, see `hashing`.
    pub addresses: Vec<Address>,
    pub hashing: Hashing,
    pub way: Way,
    pub threads: usize,
    /// In all, to each server; a multiple of `threads`.
    pub connections: usize,
    pub depth: usize,
    /// This client plays share `segment.0` of `segment.1`.
    pub segment: (u64, u64),
    pub timeout: Duration,
}

/// How servers are spoken to.
#[derive(Clone, Debug, Default)]
pub struct Way {
    pub wire: WireName,
    pub io: Io,
    /// Each of several servers holds every key: writes go to all, reads to the key's home.
    pub replicas: bool,
    /// Who one is, where servers ask.
    pub auth: Option<Credentials>,
    #[cfg(feature = "tls")]
    pub tls: Option<Tls>,
    /// The CPU of each thread; none: wherever the kernel has them run.
    pub cpus: Vec<usize>,
}

/// Why a client cannot be made.
#[derive(Debug)]
pub enum PrepareError {
    /// What was asked for makes no sense.
    Usage(String),
    /// The tape holds what this client does not do in this way.
    Unsupported(String),
    Connect(Address, io::Error),
}

impl fmt::Display for PrepareError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrepareError::Usage(text) | PrepareError::Unsupported(text) => out.write_str(text),
            PrepareError::Connect(address, error) => write!(out, "{address}: {error}"),
        }
    }
}

/// What one phase plays, and how long.
#[derive(Clone, Copy, Debug)]
pub enum Limits {
    Prefill,
    Play { start_in_ns: u64, ops: Option<u64>, duration_ns: Option<u64> },
}

/// A handle to a run that is going on.
#[derive(Clone, Default)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
}

impl Control {
    /// A handle that also tells what is recorded, about every so often.
    pub fn with_intervals(tape: &Tape, threads: usize, every: Duration) -> Control {
        let intervals = Intervals::new(tape, threads, every);
        Control { shared: Arc::new(Shared { intervals, ..Shared::default() }) }
    }

    /// Whether intervals can be told of a tape: not of one with operations without a reply.
    pub fn can_tell_intervals(tape: &Tape) -> bool {
        Intervals::can_tell(tape)
    }

    /// Whether it tells what is recorded.
    pub fn has_intervals(&self) -> bool {
        self.shared.intervals.is_some()
    }

    /// What was recorded since the last call; `None` if nothing was handed over.
    pub fn interval(&self) -> Option<Interval> {
        self.shared.intervals.as_ref()?.take()
    }

    /// End the run; it drains what is outstanding.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Operations that succeeded and that failed so far.
    pub fn progress(&self) -> (u64, u64) {
        let shared = &self.shared;
        (shared.ok.load(Ordering::Relaxed), shared.failed.load(Ordering::Relaxed))
    }
}

/// What a phase came to.
pub struct Session {
    pub tally: Tally,
    pub elapsed_ns: u64,
    pub send_elapsed_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    /// Where the window's length was known, and nobody watched it interval by interval.
    pub sections: Option<Sections>,
}

impl Session {
    /// What several players of one tape came to together.
    pub fn of<W: Wire>(players: &[Player<'_, W>], tape: &Tape) -> Session {
        let mut tally = Tally::new(tape, 0);
        let (mut elapsed_ns, mut send_elapsed_ns) = (0, 0);
        for player in players {
            tally.add(player.tally());
            let (elapsed, sent) = player.elapsed_ns();
            elapsed_ns = elapsed_ns.max(elapsed);
            send_elapsed_ns = send_elapsed_ns.max(sent);
        }
        let sections = Sections::of(players.iter().map(Player::tally));
        Session { tally, elapsed_ns, send_elapsed_ns, cpu_user_ns: 0, cpu_system_ns: 0, sections }
    }
}

/// A client with its connections open.
pub struct Client {
    configuration: Configuration,
    tape: Arc<Tape>,
    /// Where there are several servers.
    spread: Option<Arc<Spread>>,
    lanes: Box<dyn Lanes>,
}

/// Threads need a moment to be there, with room for what they will note, before a window begins: this
/// and so much for each.
const START_AHEAD_NS: u64 = 10_000_000;
const START_AHEAD_THREAD_NS: u64 = 5_000_000;
/// "For ever", short enough that sums of instants do not overflow.
const FAR_NS: u64 = u64::MAX / 4;

impl Client {
    /// Open all connections.
    pub fn prepare(
        mut configuration: Configuration,
        tape: Arc<Tape>,
    ) -> Result<Client, PrepareError> {
        let Configuration { threads, connections, depth, segment, .. } = configuration;
        let usage = |text: String| Err(PrepareError::Usage(text));
        if threads == 0 || connections == 0 || depth == 0 {
            return usage("threads, connections and depth must be at least 1".to_owned());
        }
        if connections % threads != 0 {
            return usage(format!(
                "{connections} connections cannot be shared by {threads} threads"
            ));
        }
        if segment.0 >= segment.1 {
            return usage(format!("there is no segment {} of {}", segment.0, segment.1));
        }
        if configuration.addresses.is_empty() {
            return usage("no server".to_owned());
        }
        if configuration.way.replicas && configuration.addresses.len() == 1 {
            let reason = "replicas: every key is on the one server".to_owned();
            return Err(PrepareError::Unsupported(reason));
        }
        check_kinds(&tape, &configuration)?;
        if let Some(reason) = udp::refusal(&configuration, &tape) {
            return Err(PrepareError::Unsupported(reason));
        }
        configuration.way.io = Io::chosen(&configuration)?;
        let Configuration { addresses, hashing, way, .. } = &configuration;
        let spread = (addresses.len() > 1)
            .then(|| Arc::new(Spread::new(&tape, addresses, *hashing, way.replicas)));
        let lanes = lanes::open(&configuration)
            .map_err(|(address, error)| PrepareError::Connect(address, error))?;
        Ok(Client { configuration, tape, spread, lanes })
    }

    /// How its threads wait for their sockets.
    pub fn io(&self) -> Io {
        self.configuration.way.io
    }

    /// Play one phase on all threads; blocks until it is over and drained.
    pub fn run(&mut self, limits: Limits, control: &Control) -> io::Result<Session> {
        if let Some(reason) = udp::refusal_of(limits, &self.configuration, &self.tape) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let mut window = window_of(limits, self.configuration.timeout, self.configuration.threads);
        if control.shared.intervals.is_some() {
            window.section_ns = None; // a tally that is handed over has no parts
        }
        let before = cpu_times();
        let phase = Phase {
            configuration: &self.configuration,
            tape: &self.tape,
            spread: self.spread.as_deref(),
            limits,
            window,
            shared: &control.shared,
        };
        let mut session = self.lanes.play(&phase)?;
        if let Some(intervals) = &control.shared.intervals {
            intervals.complete(&mut session.tally);
        }
        let after = cpu_times();
        Ok(Session {
            cpu_user_ns: after.0 - before.0,
            cpu_system_ns: after.1 - before.1,
            ..session
        })
    }
}

/// When a phase begins and ends.
pub(crate) fn window_of(limits: Limits, timeout: Duration, threads: usize) -> Window {
    let ahead_ns = START_AHEAD_NS + START_AHEAD_THREAD_NS * threads as u64;
    let (start_in_ns, duration_ns) = match limits {
        Limits::Prefill => (0, None),
        Limits::Play { start_in_ns, duration_ns, .. } => (start_in_ns.max(ahead_ns), duration_ns),
    };
    let start_ns = Monotonic.now_ns() + start_in_ns;
    Window {
        start_ns,
        end_ns: start_ns + duration_ns.unwrap_or(FAR_NS),
        timeout_ns: timeout.as_nanos() as u64,
        section_ns: duration_ns
            .map(|duration_ns| duration_ns / SECTIONS as u64)
            .filter(|ns| *ns > 0),
    }
}

/// Whether every kind of operation on a tape can be asked for.
fn check_kinds(tape: &Tape, configuration: &Configuration) -> Result<(), PrepareError> {
    let Way { wire, replicas, .. } = configuration.way;
    let several = configuration.addresses.len() > 1;
    let can = |op: &Op| match op.verb {
        Verb::Fetch if replicas => false,
        Verb::Flush if several => false,
        verb => wire.can(verb, op.noreply),
    };
    match (0..tape.op_count()).map(|j| tape.op(j)).find(|op| !can(op)) {
        None => Ok(()),
        Some(op) if op.verb == Verb::Fetch => Err(PrepareError::Unsupported(
            "a fetch fills one server, which would tell replicas apart".to_owned(),
        )),
        Some(op) if op.verb == Verb::Flush => Err(PrepareError::Unsupported(
            "a flush empties one server, and there are several".to_owned(),
        )),
        Some(op) => {
            let (kind, wire) = (op.verb.kind(op.noreply), wire.name());
            Err(PrepareError::Unsupported(format!("the {wire} protocol has no {kind}")))
        }
    }
}

/// CPU time of this process so far, user and system, in ns.
pub fn cpu_times() -> (u64, u64) {
    // SAFETY: getrusage fills the struct that it is given; all zeros is a valid rusage.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (ns(usage.ru_utime), ns(usage.ru_stime))
}
