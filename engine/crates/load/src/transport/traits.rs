//! The traits of the event loop's sockets: plain, TLS or UDP.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::options::{Address, ConnectionOptions};

/// A byte stream to a server that never blocks once it is open.
pub trait Transport: Read + Write + AsFd + Send + Sized + 'static {
    /// It buffers: decrypted input that was not read, and encrypted output that was not sent.
    const BUFFERS: bool;

    /// Connect, with handshake and login. Blocks; the timeout applies to each step.
    fn open(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<Self>;

    /// Start a non-blocking connect. `None` if the connection also needs a handshake or a login.
    fn start_connect(_: &Address, _: &ConnectionOptions) -> Option<io::Result<Self>> {
        None
    }

    /// The result of `start_connect`.
    fn finish_connect(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether there is input that epoll does not report.
    fn has_buffered_input(&self) -> bool {
        false
    }

    /// Send buffered output. True if all of it was sent.
    fn flush_output(&mut self) -> io::Result<bool> {
        Ok(true)
    }
}

/// The error of a connection that has no socket.
pub fn not_connected() -> io::Error {
    io::ErrorKind::NotConnected.into()
}
