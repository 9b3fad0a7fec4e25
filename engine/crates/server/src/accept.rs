//! Listening: sockets are bound, a thread accepts, connections are handed to the I/O mode.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::blocking::Threads;
use crate::events::Loop;
use crate::state::{IoMode, State};
use crate::stream::Stream;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `host:port`; port 0 is any free one.
    Tcp(String),
    Unix(PathBuf),
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
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

/// A server that runs; dropping it stops it.
pub struct Server {
    pub addresses: Vec<String>,
    wake: Arc<OwnedFd>,
    acceptor: Option<JoinHandle<()>>,
    loops: Arc<Vec<Loop>>,
    threads: Threads,
    unix_paths: Vec<PathBuf>,
}

/// Bind and begin to serve.
pub fn start(endpoints: &[Endpoint], state: &Arc<State>) -> Result<Server, ServerError> {
    let broken = |error: io::Error| ServerError(format!("the server cannot start: {error}"));
    let listeners = endpoints.iter().map(bind).collect::<Result<Vec<_>, _>>()?;
    let addresses =
        listeners.iter().map(address).collect::<io::Result<Vec<_>>>().map_err(broken)?;
    let unix_paths = listeners.iter().filter_map(|listener| match listener {
        Listener::Unix(_, path) => Some(path.clone()),
        Listener::Tcp(_) => None,
    });
    let unix_paths = unix_paths.collect();
    let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| broken(error.into()))?;
    let count = if state.settings.io == IoMode::Events { state.settings.threads } else { 0 };
    let loops = (0..count).map(|number| Loop::start(number, state)).collect::<io::Result<Vec<_>>>();
    let loops = Arc::new(loops.map_err(broken)?);
    let threads = Threads::default();
    let wake = Arc::new(wake);
    let acceptor = Acceptor {
        listeners,
        wake: Arc::clone(&wake),
        state: Arc::clone(state),
        loops: Arc::clone(&loops),
        threads: threads.clone(),
        next_loop: 0,
    };
    let acceptor = thread::Builder::new().name("accept".to_owned()).spawn(|| acceptor.run());
    Ok(Server {
        addresses,
        wake,
        acceptor: Some(acceptor.map_err(broken)?),
        loops,
        threads,
        unix_paths,
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
        if let Some(loops) = Arc::get_mut(&mut self.loops) {
            loops.iter_mut().for_each(Loop::stop);
        }
        for path in self.unix_paths.drain(..) {
            // It may have been removed by hand.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn bind(endpoint: &Endpoint) -> Result<Listener, ServerError> {
    let (what, bound) = match endpoint {
        Endpoint::Tcp(address) => (address.clone(), TcpListener::bind(address).map(Listener::Tcp)),
        Endpoint::Unix(path) => (
            format!("unix:{}", path.display()),
            UnixListener::bind(path).map(|listener| Listener::Unix(listener, path.clone())),
        ),
    };
    bound.map_err(|error| {
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => "stop what listens there, or choose another",
            io::ErrorKind::PermissionDenied => "choose a port above 1023 or a path of your own",
            _ => "write host:port, or a path for --unix",
        };
        ServerError(format!("cannot listen on {what}: {error}; {remedy}"))
    })
}

fn address(listener: &Listener) -> io::Result<String> {
    match listener {
        Listener::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
        Listener::Unix(_, path) => Ok(format!("unix:{}", path.display())),
    }
}

struct Acceptor {
    listeners: Vec<Listener>,
    wake: Arc<OwnedFd>,
    state: Arc<State>,
    loops: Arc<Vec<Loop>>,
    threads: Threads,
    next_loop: usize,
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
            Ok(stream) => self.admit(stream),
            // Out of file descriptors, most likely: let some close before the next try.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }

    fn admit(&mut self, mut stream: Stream) {
        if !self.state.admit() {
            // The peer may be gone already; the connection ends either way.
            let _ = stream.write(b"ERROR Too many open connections\r\n");
            stream.shutdown();
            return;
        }
        match self.state.settings.io {
            IoMode::Blocking => {
                if self.threads.serve(stream, &self.state).is_err() {
                    self.state.leave();
                }
            }
            IoMode::Events => {
                self.loops[self.next_loop].serve(stream);
                self.next_loop = (self.next_loop + 1) % self.loops.len();
            }
        }
    }
}

impl Listener {
    fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }
            Listener::Unix(listener, _) => {
                listener.accept().map(|(stream, _)| Stream::Unix(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }
}
