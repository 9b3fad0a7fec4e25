//! The threads of a client, each with its connections: made for one protocol and one transport, so
//! that nothing is asked twice on the way of an operation.

use std::io;
use std::marker::PhantomData;
use std::thread;
use std::time::Duration;

use cachemark_tape::Tape;

use super::cpu::stay_on;
use super::phase::{Limits, share_of};
use super::run_result::Session;
use crate::connection::{Binary, Meta, Text, Wire};
use crate::event_loop::{EventLoop, Links, Shared};
use crate::io_traits::Network;
use crate::options::{Address, Configuration, Io, Way, WireName};
use crate::player::Player;
use crate::record::Window;
use crate::routing::Spread;
#[cfg(feature = "tls")]
use crate::transport::TlsStream;
use crate::transport::{Monotonic, Ring, Sockets, Stream, UdpStream, wait_until};

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
        return over(configuration, Sockets::<TlsStream>::connect);
    }
    match configuration.way.io {
        Io::Uring => over(configuration, Ring::connect),
        Io::Auto | Io::Epoll => match configuration.addresses[0] {
            Address::Udp(_) => over(configuration, Sockets::<UdpStream>::connect),
            Address::Tcp(_) | Address::Unix(_) => over(configuration, Sockets::<Stream>::connect),
        },
    }
}

/// How a thread's connections are opened: to which servers, how, so many sets of them, waiting at most
/// so long for each.
type Connect<N> = fn(&[Address], &Way, usize, Duration) -> Result<N, (Address, io::Error)>;

fn over<N: Network + Send + 'static>(
    configuration: &Configuration,
    connect: Connect<N>,
) -> Result<Box<dyn Lanes>, (Address, io::Error)> {
    let Configuration { addresses, way, threads, connections, timeout, .. } = configuration;
    let sets = connections / threads;
    let open = |_| connect(addresses, way, sets, *timeout).map(Links::new);
    let links = (0..*threads).map(open).collect::<Result<Vec<_>, _>>()?;
    Ok(match way.wire {
        WireName::Text => Box::new(Threads { links, wire: PhantomData::<Text> }),
        WireName::Binary => Box::new(Threads { links, wire: PhantomData::<Binary> }),
        WireName::Meta => Box::new(Threads { links, wire: PhantomData::<Meta> }),
    })
}

struct Threads<W, N> {
    links: Vec<Links<N>>,
    wire: PhantomData<W>,
}

impl<W: Wire, N: Network + Send> Lanes for Threads<W, N> {
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
                    let cpu = configuration.way.cpus.get(number).copied();
                    scope.spawn(move || {
                        cpu.map_or(Ok(()), stay_on)?;
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
