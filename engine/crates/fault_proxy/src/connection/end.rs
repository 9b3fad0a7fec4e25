//! One of the two sockets of a connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use socket2::SockRef;

/// A socket, and what the event loop knows about it. Events come once for each change, so that they must be kept.
pub struct End {
    socket: TcpStream,
    pub is_readable: bool,
    pub is_writable: bool,
    /// The peer sends nothing more.
    pub has_ended: bool,
    is_shut: bool,
}

impl End {
    pub fn new(socket: TcpStream) -> End {
        // A reply of several pieces is not delayed. If the socket is dead already, the next read says so.
        let _ = socket.set_nodelay(true);
        End { socket, is_readable: false, is_writable: false, has_ended: false, is_shut: false }
    }

    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Read into `buffer`. `None`: there is nothing now, or nothing more; then `has_ended` is set.
    pub fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        if !self.is_readable || self.has_ended {
            return Ok(None);
        }
        loop {
            match self.socket.read(buffer) {
                Ok(0) => {
                    self.has_ended = true;
                    return Ok(None);
                }
                Ok(bytes) => return Ok(Some(&buffer[..bytes])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_readable = false;
                    return Ok(None);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Write as many bytes as the socket takes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_writable {
            return Ok(0);
        }
        loop {
            match self.socket.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_writable = false;
                    return Ok(0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// Say that nothing more will be sent.
    pub fn finish(&mut self) {
        if !self.is_shut {
            self.is_shut = true;
            // If the peer is gone, the next read says so.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }

    /// From now on, closing the socket resets the connection.
    pub fn reset_at_close(&self) {
        let _ = SockRef::from(&self.socket).set_linger(Some(Duration::ZERO));
    }
}
