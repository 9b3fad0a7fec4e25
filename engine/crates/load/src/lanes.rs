//! The threads of a client, each with its connections: made for one protocol and one transport, so
//! that nothing is asked twice on the way of an operation.

use std::io;
use std::marker::PhantomData;
use std::thread;
use std::time::Duration;

use cachemark_tape::{Lane, Tape};

use crate::client::{Configuration, Limits, Session};
use crate::clock::Monotonic;
use crate::event_loop::{EventLoop, Links, Shared};
use crate::outside::Clock;
use crate::player::Player;
use crate::share::{Share, Window};
use crate::socket::{Address, Stream};
use crate::sockets::Sockets;
use crate::spread::Spread;
#[cfg(feature = "tls")]
use crate::tls::TlsStream;
use crate::transport::Transport;
use crate::wire::{Binary, Meta, Text, Wire, WireName};

/// One phase of a client.
pub struct Phase<'run> {
    pub configuration: &'run Configuration,
    pub tape: &'run Tape,
    pub spread: Option<&'run Spread>,
    pub limits: Limits,
    pub window: Window,
    pub shared: &'run Shared,
}

/// Threads that play; they keep their connections from phase to phase.
pub trait Lanes: Send {
    fn play(&mut self, phase: &Phase<'_>) -> io::Result<Session>;
}

/// Open all connections. An error comes with the address that could not be had.
pub fn open(configuration: &Configuration) -> Result<Box<dyn Lanes>, (Address, io::Error)> {
    #[cfg(feature = "tls")]
    if configuration.way.tls.is_some() {
        return over::<TlsStream>(configuration);
    }
    over::<Stream>(configuration)
}

fn over<S: Transport>(
    configuration: &Configuration,
) -> Result<Box<dyn Lanes>, (Address, io::Error)> {
    Ok(match configuration.way.wire {
        WireName::Text => Box::new(Threads::<Text, S>::open(configuration)?),
        WireName::Binary => Box::new(Threads::<Binary, S>::open(configuration)?),
        WireName::Meta => Box::new(Threads::<Meta, S>::open(configuration)?),
    })
}

struct Threads<W, S> {
    links: Vec<Links<Sockets<S>>>,
    wire: PhantomData<W>,
}

impl<W: Wire, S: Transport> Threads<W, S> {
    fn open(configuration: &Configuration) -> Result<Threads<W, S>, (Address, io::Error)> {
        let Configuration { addresses, way, threads, connections, timeout, .. } = configuration;
        let sets = connections / threads;
        let links =
            (0..*threads).map(|_| Sockets::connect(addresses, way, sets, *timeout).map(Links::new));
        Ok(Threads { links: links.collect::<Result<_, _>>()?, wire: PhantomData })
    }
}

impl<W: Wire, S: Transport> Lanes for Threads<W, S> {
    fn play(&mut self, phase: &Phase<'_>) -> io::Result<Session> {
        let Phase { configuration, tape, spread, limits, window, shared } = *phase;
        // Everything outstanding at the window's end is answered or timed out by then.
        let drain_end_ns = window.end_ns + 2 * window.timeout_ns;
        let players = thread::scope(|scope| {
            let threads: Vec<_> = self
                .links
                .iter_mut()
                .enumerate()
                .map(|(number, links)| {
                    let Configuration { threads, segment, .. } = *configuration;
                    let share = share_of(limits, (threads, segment), number, tape);
                    scope.spawn(move || {
                        let count = configuration.connections / configuration.threads;
                        let player =
                            Player::<W>::new(tape, share, window, count, configuration.depth);
                        let player = match spread {
                            Some(spread) => player.over(spread),
                            None => player,
                        };
                        wait_until(window.start_ns);
                        EventLoop::new(player, Monotonic, links, shared, drain_end_ns).run()
                    })
                })
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect::<io::Result<Vec<_>>>()
        })?;
        Ok(Session::of(&players, tape))
    }
}

/// Which records thread `number` plays: one rule for threads and for whole clients.
pub fn share_of(
    limits: Limits,
    (threads, (segment, segments)): (usize, (u64, u64)),
    number: usize,
    tape: &Tape,
) -> Share {
    let threads = threads as u64;
    let lane = segment * threads + number as u64;
    let lanes = segments * threads;
    match limits {
        Limits::Prefill => Share::Prefill { first: lane, stride: lanes },
        Limits::Play { ops, .. } => Share::Lane {
            lane: Lane::new(lane, lanes, tape.op_count(), tape.group()),
            ops: ops
                .map_or(u64::MAX, |ops| ops / threads + u64::from((number as u64) < ops % threads)),
        },
    }
}

pub fn wait_until(start_ns: u64) {
    let spin_ns = 200_000;
    let left = start_ns.saturating_sub(Monotonic.now_ns());
    if left > spin_ns {
        thread::sleep(Duration::from_nanos(left - spin_ns));
    }
    while Monotonic.now_ns() < start_ns {
        std::hint::spin_loop();
    }
}
