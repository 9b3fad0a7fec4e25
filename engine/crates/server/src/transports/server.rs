//! Starting and stopping a server.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::state::server_state::{ListeningSocket, State};
use crate::state::settings::IoMode;
use crate::state::size_classes;
use crate::transports::acceptor::Acceptor;
use crate::transports::blocking::ConnectionThreads;
use crate::transports::event_loop::EventLoop;
use crate::transports::housekeeping::Housekeeping;
use crate::transports::listeners::{Bound, Endpoint, Listener, ServerError};
use crate::transports::udp::UdpThread;
use crate::transports::unix::SocketFile;
use crate::transports::watchers::Watchers;

/// A running server. Dropping it stops it.
pub struct Server {
    pub addresses: Vec<String>,
    wake: Arc<OwnedFd>,
    acceptor: Option<JoinHandle<()>>,
    loops: Arc<Vec<EventLoop>>,
    threads: ConnectionThreads,
    watchers: Arc<Watchers>,
    housekeeping: Housekeeping,
    datagrams: Vec<UdpThread>,
    unix_files: Vec<SocketFile>,
}

/// Bind the sockets and begin to serve.
pub fn start(endpoints: &[Endpoint], state: &Arc<State>) -> Result<Server, ServerError> {
    let cannot_start = |error: io::Error| ServerError(format!("the server cannot start: {error}"));
    if state.settings.io == IoMode::Uring && state.tls().is_some() {
        let remedy = "TLS does not work with io_uring here: choose events or blocking";
        return Err(ServerError(remedy.to_owned()));
    }
    let mut bound = Bound::default();
    for endpoint in endpoints {
        bound.bind(endpoint, state.tls(), &state.settings)?;
    }
    let Bound { listeners, sockets, unix_files } = bound;
    let tcp = listeners.iter().map(Listener::address);
    let udp = sockets.iter().map(|socket| Ok(format!("udp:{}", socket.local_addr()?)));
    let addresses = tcp.chain(udp).collect::<io::Result<Vec<_>>>().map_err(cannot_start)?;
    let tcp = listeners.iter().map(|listener| listener.as_fd().as_raw_fd());
    let descriptors = tcp.chain(sockets.iter().map(|socket| socket.as_fd().as_raw_fd()));
    let named = descriptors.zip(&addresses);
    let listening =
        named.map(|(socket, address)| ListeningSocket { socket, address: address.clone() });
    state.is_shared();
    state.store.count_by_size(size_classes::of(&state.tuning()), state.now_s());
    // A state belongs to one server.
    let _ = state.listening.set(listening.collect());
    let datagrams = sockets
        .into_iter()
        .map(|socket| UdpThread::start(socket, state))
        .collect::<io::Result<_>>();
    let datagrams = datagrams.map_err(cannot_start)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| cannot_start(error.into()))?;
    let count = if state.settings.io == IoMode::Blocking { 0 } else { state.settings.threads };
    let watchers = Watchers::new(state);
    let loops = (0..count)
        .map(|number| EventLoop::start(number, state, &watchers))
        .collect::<io::Result<Vec<_>>>();
    let loops = Arc::new(loops.map_err(|error| {
        let remedy = "lower --threads, or raise the limit (ulimit -n, ulimit -u)";
        ServerError(format!("cannot start {count} event loops: {error}; {remedy}"))
    })?);
    let threads = ConnectionThreads::new(Arc::clone(&watchers));
    let housekeeping = Housekeeping::start(state).map_err(cannot_start)?;
    let wake = Arc::new(wake);
    let acceptor = Acceptor::new(
        listeners,
        Arc::clone(&wake),
        Arc::clone(state),
        Arc::clone(&loops),
        threads.clone(),
    );
    let acceptor = thread::Builder::new().name("accept".to_owned()).spawn(|| acceptor.run());
    Ok(Server {
        addresses,
        wake,
        acceptor: Some(acceptor.map_err(cannot_start)?),
        loops,
        threads,
        watchers,
        housekeeping,
        datagrams,
        unix_files,
    })
}

impl Server {
    /// Stop accepting, end all connections and remove the files of Unix sockets.
    pub fn stop(&mut self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(acceptor) = self.acceptor.take() {
            // An acceptor that panicked has ended too.
            let _ = acceptor.join();
        }
        self.threads.stop();
        self.datagrams.iter_mut().for_each(UdpThread::stop);
        if let Some(loops) = Arc::get_mut(&mut self.loops) {
            loops.iter_mut().for_each(EventLoop::stop);
        }
        self.housekeeping.stop();
        self.watchers.stop();
        self.unix_files.clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
