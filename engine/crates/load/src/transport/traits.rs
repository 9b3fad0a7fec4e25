//! What bytes go through: a socket as it is, or TLS over one.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::options::{Address, Way};

/// A connection's bytes; it never blocks once it is entered.
pub trait Transport: Read + Write + AsFd + Send + Sized + 'static {
    /// It holds bytes back: what was read and not asked for, what was taken and not sent.
    const HOLDS: bool;

    /// Connect and be let in; blocks, at most so long for each step.
    fn enter(address: &Address, way: &Way, timeout: Duration) -> io::Result<Self>;

    /// Begin to connect without blocking, if that is all there is to do.
    fn begin(_: &Address, _: &Way) -> Option<io::Result<Self>> {
        None
    }

    /// How that ended.
    fn begun(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether there is something to read though the socket has nothing.
    fn has_unread(&self) -> bool {
        false
    }

    /// Send what was taken; whether all of it has gone.
    fn push(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// The error of a connection that has no socket.
pub fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
