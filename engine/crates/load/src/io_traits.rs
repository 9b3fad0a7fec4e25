//! What the event loop takes from outside: a clock, and connections that never block.
//!
//! Both are type parameters, so the measured path pays nothing for them. The native client runs on
//! `Monotonic` and `EpollSockets`; the fidelity cases run the same loop on a clock and a server that
//! are scripts, and need no time.

use std::io::{self, IoSlice};

/// Instants in ns that never go back.
pub trait Clock {
    fn now_ns(&self) -> u64;

    /// The wall clock, in a world that sets it. Nothing that is measured comes from it: it is there
    /// for the case that proves so.
    fn wall_ns(&self) -> u64 {
        self.now_ns()
    }
}

/// How long a wait may last when nothing is ready.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimit {
    /// The next operation is due in so long: an instant to be met as exactly as the world allows.
    pub due_in_ns: Option<u64>,
    /// Whatever else time brings comes in so long.
    pub max_ns: u64,
}

impl WaitLimit {
    /// Look at what is ready, and go on.
    pub const NONE: WaitLimit = WaitLimit { due_in_ns: None, max_ns: 0 };
}

/// Something that a connection waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    pub connection: usize,
    /// More can be written; otherwise there is something to read, or the connection has ended.
    pub writable: bool,
}

/// A thread's connections, numbered from 0. `WouldBlock` means what it does for sockets.
pub trait Network {
    fn connections(&self) -> usize;

    /// The calling thread is going to use them.
    fn attach_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// It has done with them.
    fn detach_thread(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, c: usize, bytes: &[u8]) -> io::Result<usize>;

    /// Write pieces that follow each other; at least a part of the first.
    fn write_vectored(&mut self, c: usize, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write(c, &slices[0])
    }

    /// 0 bytes: the other side has closed.
    fn read(&mut self, c: usize, into: &mut [u8]) -> io::Result<usize>;

    /// Whether `wait` is to tell that more can be written.
    fn watch_writable(&mut self, c: usize, watch: bool) -> io::Result<()>;

    fn close(&mut self, c: usize);

    /// Begin to open a closed connection; it is ready once it is open or has failed.
    fn start_connect(&mut self, c: usize) -> io::Result<()>;

    /// How that ended. An open connection tells from then on what there is to read.
    fn finish_connect(&mut self, c: usize) -> io::Result<()>;

    /// Wait until a connection is ready or the nap is over: how many are ready.
    fn wait(&mut self, nap: WaitLimit) -> io::Result<usize>;

    /// The n-th that was ready after the last wait.
    fn ready(&self, n: usize) -> Ready;
}
