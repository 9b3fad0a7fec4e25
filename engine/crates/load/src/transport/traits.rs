//! What bytes go through: a socket as it is, or TLS over one.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::options::{Address, ConnectionOptions};

/// A connection's bytes; it never blocks once it is entered.
pub trait Transport: Read + Write + AsFd + Send + Sized + 'static {
    /// It holds bytes back: what was read and not asked for, what was taken and not sent.
    const BUFFERS: bool;

    /// Connect and be let in; blocks, at most so long for each step.
    fn open(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<Self>;

    /// Begin to connect without blocking, if that is all there is to do.
    fn start_connect(_: &Address, _: &ConnectionOptions) -> Option<io::Result<Self>> {
        None
    }

    /// How that ended.
    fn finish_connect(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether there is something to read though the socket has nothing.
    fn has_buffered_input(&self) -> bool {
        false
    }

    /// Send what was taken; whether all of it has gone.
    fn flush_output(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// The error of a connection that has no socket.
pub fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
