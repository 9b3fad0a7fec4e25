//! A connected socket: TCP, Unix, or TLS over TCP.

use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use crate::connection::tls_stream::TlsStream;
use crate::state::tls::Tls;

#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Stream {
    /// TLS over a TCP connection. The handshake happens with the first reads.
    pub fn tls(socket: TcpStream, tls: &Tls) -> io::Result<Stream> {
        Ok(Stream::Tls(Box::new(TlsStream::new(socket, tls)?)))
    }

    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
            Stream::Tls(stream) => stream.socket().set_nonblocking(nonblocking),
        }
    }

    /// The socket, if bytes go to it as they are.
    pub fn plain_socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_fd()),
            Stream::Unix(stream) => Some(stream.as_fd()),
            Stream::Tls(_) => None,
        }
    }

    /// A handle with which another thread can shut the connection down.
    pub fn shutdown_handle(&self) -> io::Result<ShutdownHandle> {
        self.as_fd().try_clone_to_owned().map(ShutdownHandle)
    }

    /// Shut down both directions. A thread that waits on the socket wakes up.
    pub fn shutdown(&self) {
        // It fails if the peer has closed the connection already, which is fine.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.socket().shutdown(Shutdown::Both),
        };
    }

    /// Announce the end of the connection. Without this, TLS treats it as a truncation attack (RFC 8446,
    /// 6.1), and OpenSSL reports an error.
    pub fn send_close_notify(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.send_close_notify();
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
        }
    }

    /// Read into the first buffer, and what goes beyond it into the second. With TLS, into the first only.
    pub fn read_both(&mut self, first: &mut [u8], second: &mut [u8]) -> io::Result<usize> {
        if let Stream::Tls(stream) = self {
            return stream.read(if first.is_empty() { second } else { first });
        }
        let mut both = [IoSliceMut::new(first), IoSliceMut::new(second)];
        match self {
            Stream::Tcp(stream) => stream.read_vectored(&mut both),
            Stream::Unix(stream) => stream.read_vectored(&mut both),
            Stream::Tls(_) => Ok(0),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes),
        }
    }

    /// Send the bytes that TLS has buffered; sockets have none.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }

    /// Whether TLS has decrypted bytes, or the end of the stream, that were not read yet. The socket is not
    /// readable because of them.
    pub fn has_buffered_input(&mut self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            Stream::Tls(stream) => stream.has_buffered_input(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.socket().as_fd(),
        }
    }
}

/// Shuts down a connection that another thread serves.
pub struct ShutdownHandle(OwnedFd);

impl ShutdownHandle {
    pub fn shut_down(&self) {
        // The peer may have closed the connection already.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}
