//! Listening: sockets are bound, a thread accepts, connections are handed to the I/O mode.

use std::fmt;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::blocking::Threads;
use crate::guest::Guest;
use crate::inbox::Loop;
use crate::state::{IoMode, State};
use crate::stream::Stream;
use crate::tls::Tls;
use crate::udp::Datagrams;
use crate::unix::{self, SocketFile};

/// Between two complaints of the same.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `host:port`; port 0 is any free one.
    Tcp(String),
    Unix(PathBuf),
    /// Datagrams on `host:port`.
    Udp(String),
}

/// A server that cannot start, with the remedy.
#[derive(Debug)]
pub struct ServerError(pub String);

impl fmt::Display for ServerError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

enum Listener {
    Tcp(TcpListener, Option<Tls>),
    Unix(UnixListener, PathBuf),
}

/// A server that runs; dropping it stops it.
pub struct Server {
    pub addresses: Vec<String>,
    wake: Arc<OwnedFd>,
    acceptor: Option<JoinHandle<()>>,
    loops: Arc<Vec<Loop>>,
    threads: Threads,
    datagrams: Vec<Datagrams>,
    unix_files: Vec<SocketFile>,
}

/// Bind and begin to serve.
pub fn start(endpoints: &[Endpoint], state: &Arc<State>) -> Result<Server, ServerError> {
    let broken = |error: io::Error| ServerError(format!("the server cannot start: {error}"));
    if state.settings.io == IoMode::Uring && state.tls().is_some() {
        let remedy = "TLS and io_uring do not go together here: choose events or blocking";
        return Err(ServerError(remedy.to_owned()));
    }
    let mut bound = Bound::default();
    for endpoint in endpoints {
        bound.bind(endpoint, state.tls())?;
    }
    let Bound { listeners, sockets, unix_files } = bound;
    let tcp = listeners.iter().map(Listener::address);
    let udp = sockets.iter().map(|socket| Ok(format!("udp:{}", socket.local_addr()?)));
    let addresses = tcp.chain(udp).collect::<io::Result<Vec<_>>>().map_err(broken)?;
    // A state serves one server.
    let _ = state.addresses.set(addresses.clone());
    let datagrams = sockets
        .into_iter()
        .map(|socket| Datagrams::start(socket, state))
        .collect::<io::Result<_>>();
    let datagrams = datagrams.map_err(broken)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| broken(error.into()))?;
    let count = if state.settings.io == IoMode::Blocking { 0 } else { state.settings.threads };
    let loops = (0..count).map(|number| Loop::start(number, state)).collect::<io::Result<Vec<_>>>();
    let loops = Arc::new(loops.map_err(|error| {
        let remedy = "lower --threads, or raise the limit (ulimit -n, ulimit -u)";
        ServerError(format!("{count} event loops cannot be had: {error}; {remedy}"))
    })?);
    let threads = Threads::default();
    let wake = Arc::new(wake);
    let acceptor = Acceptor {
        listeners,
        wake: Arc::clone(&wake),
        state: Arc::clone(state),
        loops: Arc::clone(&loops),
        threads: threads.clone(),
        next_loop: 0,
        told: None,
    };
    let acceptor = thread::Builder::new().name("accept".to_owned()).spawn(|| acceptor.run());
    Ok(Server {
        addresses,
        wake,
        acceptor: Some(acceptor.map_err(broken)?),
        loops,
        threads,
        datagrams,
        unix_files,
    })
}

impl Server {
    /// Stop accepting, end all connections, remove Unix sockets.
    pub fn stop(&mut self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(acceptor) = self.acceptor.take() {
            // An acceptor that panicked has ended too.
            let _ = acceptor.join();
        }
        self.threads.stop();
        self.datagrams.iter_mut().for_each(Datagrams::stop);
        if let Some(loops) = Arc::get_mut(&mut self.loops) {
            loops.iter_mut().for_each(Loop::stop);
        }
        self.unix_files.clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What was bound so far.
#[derive(Default)]
struct Bound {
    listeners: Vec<Listener>,
    sockets: Vec<UdpSocket>,
    unix_files: Vec<SocketFile>,
}

impl Bound {
    fn bind(&mut self, endpoint: &Endpoint, tls: Option<&Tls>) -> Result<(), ServerError> {
        let (what, bound) = match endpoint {
            Endpoint::Tcp(address) => {
                let bound = TcpListener::bind(address);
                let bound = bound.map(|at| self.listeners.push(Listener::Tcp(at, tls.cloned())));
                (address.clone(), bound)
            }
            Endpoint::Unix(path) => {
                let bound = unix::bind(path).map(|(at, file)| {
                    self.listeners.push(Listener::Unix(at, path.clone()));
                    self.unix_files.push(file);
                });
                (format!("unix:{}", path.display()), bound)
            }
            Endpoint::Udp(address) => {
                let bound = UdpSocket::bind(address).map(|socket| self.sockets.push(socket));
                (format!("udp:{address}"), bound)
            }
        };
        bound.map_err(|error| {
            let remedy = remedy(endpoint, error.kind());
            ServerError(format!("cannot listen on {what}: {error}; {remedy}"))
        })
    }
}

fn remedy(endpoint: &Endpoint, kind: io::ErrorKind) -> &'static str {
    match (kind, endpoint) {
        (io::ErrorKind::AddrInUse, _) => "stop what listens there, or choose another",
        (io::ErrorKind::PermissionDenied, Endpoint::Unix(_)) => "choose a folder of your own",
        (io::ErrorKind::PermissionDenied, _) => "choose a port above 1023",
        (io::ErrorKind::AddrNotAvailable, _) => "choose an address that this machine has",
        (io::ErrorKind::AlreadyExists, _) => "choose a path where nothing is",
        (io::ErrorKind::NotFound, Endpoint::Unix(_)) => "make its folder",
        (_, Endpoint::Unix(_)) => "choose another path",
        _ => "write host:port",
    }
}

struct Acceptor {
    listeners: Vec<Listener>,
    wake: Arc<OwnedFd>,
    state: Arc<State>,
    loops: Arc<Vec<Loop>>,
    threads: Threads,
    next_loop: usize,
    /// When it was last told that a connection could not be had.
    told: Option<Instant>,
}

impl Acceptor {
    fn run(mut self) {
        loop {
            let mut sockets: Vec<PollFd<'_>> = self
                .listeners
                .iter()
                .map(|at| PollFd::from_borrowed_fd(at.as_fd(), PollFlags::IN))
                .collect();
            sockets.push(PollFd::new(&*self.wake, PollFlags::IN));
            if poll(&mut sockets, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
                return;
            }
            let ready: Vec<bool> = sockets.iter().map(|at| !at.revents().is_empty()).collect();
            if ready.last() == Some(&true) {
                return;
            }
            for (number, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
                self.accept(number);
            }
        }
    }

    fn accept(&mut self, number: usize) {
        match self.listeners[number].accept() {
            Ok((stream, address)) => self.admit(number, stream, address),
            // Out of file descriptors, most likely: let some close before the next try.
            Err(error) => {
                self.lack(&error);
                thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// A connection cannot be had; that is told, but not for each.
    fn lack(&mut self, error: &io::Error) {
        self.state.lacked_connections.fetch_add(1, Ordering::Relaxed);
        if self.told.is_none_or(|told| told.elapsed() > TOLD_AGAIN_AFTER) {
            self.told = Some(Instant::now());
            eprintln!(
                "cachemark-engine: a connection cannot be had: {error}; raise the limit (ulimit -n) \
                 or lower --max-connections"
            );
        }
    }

    fn admit(&mut self, number: usize, mut stream: Stream, address: String) {
        let socket = stream.as_fd().as_raw_fd();
        let listener = self.listeners[number].name();
        let Some(guest) = Guest::admit(&self.state, socket, address, listener) else {
            // The peer may be gone already; the connection ends either way. To tell it through TLS
            // would need the handshake first.
            if !matches!(stream, Stream::Tls(_)) {
                let _ = stream.write(b"ERROR Too many open connections\r\n");
            }
            stream.shutdown();
            return;
        };
        match self.state.settings.io {
            // Without a thread there is no connection: the guest is gone with it.
            IoMode::Blocking => {
                if let Err(error) = self.threads.serve(stream, guest, &self.state) {
                    self.lack(&error);
                }
            }
            IoMode::Events | IoMode::Uring | IoMode::Busy => self.hand_over(stream, guest),
        }
    }

    /// To the next loop that has not ended; where none is left, the connection ends here.
    fn hand_over(&mut self, stream: Stream, guest: Guest) {
        let count = self.loops.len();
        let mut turns = (0..count).map(|turn| (self.next_loop + turn) % count);
        if let Some(number) = turns.find(|number| self.loops[*number].runs()) {
            self.loops[number].serve(stream, guest);
            self.next_loop = (number + 1) % count;
        }
    }
}

impl Listener {
    /// As `stats conns` has it.
    fn name(&self) -> String {
        let address = self.address().unwrap_or_default();
        match self {
            Listener::Tcp(..) => format!("tcp:{address}"),
            Listener::Unix(..) => address,
        }
    }

    fn address(&self) -> io::Result<String> {
        match self {
            Listener::Tcp(listener, _) => listener.local_addr().map(|address| address.to_string()),
            Listener::Unix(_, path) => Ok(format!("unix:{}", path.display())),
        }
    }

    /// A connection and where it comes from.
    fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, from) = listener.accept()?;
                stream.set_nodelay(true)?;
                let stream = match tls {
                    Some(tls) => Stream::tls(stream, tls)?,
                    None => Stream::Tcp(stream),
                };
                Ok((stream, format!("tcp:{from}")))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), self.name()))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener, _) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}
