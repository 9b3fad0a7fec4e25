//! The threads of a client with their connections. They are generic over protocol and transport, so
//! that the measured path has no dynamic calls.

use std::io;
use std::marker::PhantomData;
use std::thread;
use std::time::Duration;

use cachemark_tape::Tape;

use super::control::RunControl;
use super::cpu::pin_to_cpu;
use super::phase::{PhaseLimits, work_slice_of};
use super::run_result::RunResult;
use super::slices::{SliceDriver, SlicePlayer, play_slices};
use crate::connection::{Binary, Meta, SpacedText, Text, Wire};
use crate::event_loop::{EventLoop, SharedState, ThreadConnections};
use crate::io_traits::Network;
use crate::options::{Address, ClientOptions, ConnectionOptions, IoBackend, WireName};
use crate::player::{Player, SliceResult};
use crate::record::Window;
use crate::routing::KeyRouting;
#[cfg(feature = "tls")]
use crate::transport::TlsStream;
use crate::transport::{EpollSockets, Monotonic, Ring, Stream, UdpStream, wait_until};

/// The context of all threads in one phase.
pub struct PhaseContext<'run> {
    pub options: &'run ClientOptions,
    pub tape: &'run Tape,
    pub routing: Option<&'run KeyRouting>,
    pub limits: PhaseLimits,
    pub window: Window,
    pub shared: &'run SharedState,
}

/// The threads of a client. They keep their connections from phase to phase.
pub trait ClientThreads: Send {
    fn play(&mut self, phase: &PhaseContext<'_>) -> io::Result<RunResult>;

    fn play_slices(
        &mut self,
        phase: &PhaseContext<'_>,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<RunResult>;
}

/// Open all connections. An error comes with the address that failed.
pub fn open(options: &ClientOptions) -> Result<Box<dyn ClientThreads>, (Address, io::Error)> {
    #[cfg(feature = "tls")]
    if options.connection_options.tls.is_some() {
        return open_threads(options, EpollSockets::<TlsStream>::connect);
    }
    match options.connection_options.io {
        IoBackend::Uring => open_threads(options, Ring::connect),
        IoBackend::Auto | IoBackend::Epoll => match options.addresses[0] {
            Address::Udp(_) => open_threads(options, EpollSockets::<UdpStream>::connect),
            Address::Tcp(_) | Address::Unix(_) => {
                open_threads(options, EpollSockets::<Stream>::connect)
            }
        },
    }
}

/// Opens the connections of a thread: addresses, options, connections per address, timeout.
type Connect<N> =
    fn(&[Address], &ConnectionOptions, usize, Duration) -> Result<N, (Address, io::Error)>;

fn open_threads<N: Network + Send + 'static>(
    options: &ClientOptions,
    connect: Connect<N>,
) -> Result<Box<dyn ClientThreads>, (Address, io::Error)> {
    let ClientOptions { addresses, connection_options, threads, connections, timeout, .. } =
        options;
    let per_address = connections / threads;
    let open = |_| {
        connect(addresses, connection_options, per_address, *timeout).map(ThreadConnections::new)
    };
    let connections = (0..*threads).map(open).collect::<Result<Vec<_>, _>>()?;
    Ok(match connection_options.wire {
        WireName::Text if connection_options.trailing_space => {
            Box::new(TypedThreads { connections, wire: PhantomData::<SpacedText> })
        }
        WireName::Text => Box::new(TypedThreads { connections, wire: PhantomData::<Text> }),
        WireName::Binary => Box::new(TypedThreads { connections, wire: PhantomData::<Binary> }),
        WireName::Meta => Box::new(TypedThreads { connections, wire: PhantomData::<Meta> }),
    })
}

struct TypedThreads<W, N> {
    connections: Vec<ThreadConnections<N>>,
    wire: PhantomData<W>,
}

impl<W: Wire, N: Network + Send> ClientThreads for TypedThreads<W, N> {
    fn play(&mut self, phase: &PhaseContext<'_>) -> io::Result<RunResult> {
        let PhaseContext { options, tape, window, shared, .. } = *phase;
        // By then every operation has been answered or has timed out.
        let drain_end_ns = window.end_ns + 2 * window.timeout_ns;
        let mut played: Vec<_> = self.connections.iter().map(|_| None).collect();
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (connections, place) in self.connections.iter_mut().zip(&mut played) {
            let number = jobs.len();
            jobs.push(Box::new(move || {
                pin_thread(options, number)?;
                let player = player_of_thread::<W>(phase, number);
                wait_until(window.start_ns);
                let event_loop =
                    EventLoop::new(player, Monotonic, connections, shared, drain_end_ns);
                *place = Some(event_loop.run()?);
                Ok(())
            }));
        }
        on_threads(jobs)?;
        let mut players: Vec<_> = played.into_iter().flatten().collect();
        let calls = players.iter_mut().map(Player::take_calls).collect();
        Ok(RunResult { calls, ..RunResult::of(&players, tape) })
    }

    fn play_slices(
        &mut self,
        phase: &PhaseContext<'_>,
        control: &RunControl,
        driver: &mut dyn SliceDriver,
    ) -> io::Result<RunResult> {
        let mut threads: Vec<_> = self
            .connections
            .iter_mut()
            .enumerate()
            .map(|(number, connections)| {
                let mut player = player_of_thread::<W>(phase, number);
                player.prepare_slices();
                NetworkSlices { player: Some(player), connections, phase, number }
            })
            .collect();
        let players = threads.iter_mut().map(|thread| thread as &mut dyn SlicePlayer).collect();
        let totals = play_slices(players, phase.window.timeout_ns, control, driver)?;
        let players = threads.into_iter().filter_map(|thread| thread.player);
        Ok(RunResult::of_slices(players.map(Player::into_slice_metrics).collect(), &totals))
    }
}

/// The work of a thread. It is called once, so that the code of threads is compiled once and not
/// for each protocol and transport.
type Job<'run> = Box<dyn FnOnce() -> io::Result<()> + Send + 'run>;

/// Run each job on a thread of its own, until all have ended.
fn on_threads(jobs: Vec<Job<'_>>) -> io::Result<()> {
    thread::scope(|scope| {
        let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().try_for_each(join)
    })
}

/// Pin the calling thread to the CPU that the options name for this number, if they name one.
fn pin_thread(options: &ClientOptions, number: usize) -> io::Result<()> {
    options.connection_options.cpus.get(number).copied().map_or(Ok(()), pin_to_cpu)
}

/// The player of a phase for one thread.
fn player_of_thread<'run, W: Wire>(phase: &PhaseContext<'run>, number: usize) -> Player<'run, W> {
    let PhaseContext { options, tape, routing, limits, window, .. } = *phase;
    let ClientOptions { threads, connections, depth, refill, segment, .. } = *options;
    let work_slice = work_slice_of(limits, (threads, segment), number, tape);
    let player = Player::<W>::new(tape, work_slice, window, connections / threads, depth)
        .with_refill(refill);
    let player = if phase.shared.logs_calls { player.with_call_log(threads) } else { player };
    let player = match routing {
        Some(routing) => player.with_routing(routing),
        None => player,
    };
    match options.connection_options.reconnect_after {
        Some(operations) => player.with_reconnect_after(operations.get()),
        None => player,
    }
}

/// A thread's player and connections, which it keeps from slice to slice.
struct NetworkSlices<'run, W, N> {
    /// It is absent only after an error.
    player: Option<Player<'run, W>>,
    connections: &'run mut ThreadConnections<N>,
    phase: &'run PhaseContext<'run>,
    number: usize,
}

impl<W: Wire, N: Network + Send> SlicePlayer for NetworkSlices<'_, W, N> {
    fn begin(&mut self) -> io::Result<()> {
        pin_thread(self.phase.options, self.number)?;
        self.connections.network_mut().attach_thread()
    }

    fn play(&mut self, window: Window, lead_in_ns: u64) -> io::Result<SliceResult> {
        let Some(mut player) = self.player.take() else { return Ok(SliceResult::default()) };
        player.begin_slice(window, lead_in_ns);
        wait_until(window.start_ns);
        let drain_end_ns = window.end_ns + 2 * window.timeout_ns;
        let event_loop =
            EventLoop::new(player, Monotonic, self.connections, self.phase.shared, drain_end_ns);
        let player = event_loop.run_slice()?;
        let result = player.end_slice();
        self.player = Some(player);
        Ok(result)
    }

    fn end(&mut self) -> io::Result<()> {
        self.connections.network_mut().detach_thread()
    }
}
