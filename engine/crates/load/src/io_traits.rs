//! The clock and the non-blocking connections that the event loop runs on.
//!
//! Both are type parameters, so the measured path has no dynamic calls. The native client uses
//! `Monotonic` and `EpollSockets` or `Ring`. The fidelity cases run the same loop on a simulated clock
//! and a simulated network, which take no real time.

use std::io::{self, IoSlice};

/// A clock in ns that never goes backwards.
pub trait Clock {
    fn now_ns(&self) -> u64;

    /// The wall clock. Only a simulation overrides this method: one fidelity case proves that no
    /// measurement depends on the wall clock.
    fn wall_ns(&self) -> u64 {
        self.now_ns()
    }
}

/// How long a wait may last if nothing becomes ready.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimit {
    /// The next operation is due after this time. The wait must end at that instant as exactly as
    /// possible.
    pub due_in_ns: Option<u64>,
    /// The wait ends after this time in any case.
    pub max_ns: u64,
}

impl WaitLimit {
    /// Do not wait: only look at what is ready.
    pub const NONE: WaitLimit = WaitLimit { due_in_ns: None, max_ns: 0 };
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub connection: usize,
    /// True: the connection can be written to. False: it has input, or it has ended.
    pub writable: bool,
}

/// The connections of one thread, numbered from 0. `WouldBlock` has the same meaning as for sockets.
pub trait Network {
    fn connections(&self) -> usize;

    /// The calling thread is about to use the connections.
    fn attach_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The calling thread has finished with the connections.
    fn detach_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Write several buffers in one call. At least a part of the first is written.
    fn write_vectored(&mut self, c: usize, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(c, &slices[0])
    }

    /// Read available bytes. A result of 0 means that the other side has closed the connection.
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize>;

    /// Choose whether `wait` also reports that the connection can be written to.
    fn watch_writable(&mut self, c: usize, watch: bool) -> io::Result<()>;

    fn close(&mut self, c: usize);

    /// Start to open a closed connection. It becomes ready when it is open or has failed.
    fn start_connect(&mut self, c: usize) -> io::Result<()>;

    /// The result of `start_connect`. If it is `Ok`, `wait` reports input of this connection from now
    /// on.
    fn finish_connect(&mut self, c: usize) -> io::Result<()>;

    /// Wait until a connection is ready or the limit has passed. Returns the number of events.
    fn wait(&mut self, limit: WaitLimit) -> io::Result<usize>;

    /// Event `n` of the last wait.
    fn ready(&self, n: usize) -> Ready;
}
