//! Non-blocking TCP and Unix sockets.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::{Domain, SockAddr, Socket, Type};

use super::login::authenticate;
use super::traits::Transport;
use crate::options::{Address, ConnectionOptions};

/// A socket that is connected or connecting, and never blocks.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
}

impl Stream {
    /// Connect within a timeout.
    pub fn connect(address: &Address, timeout: Duration) -> io::Result<Stream> {
        let stream = Stream::blocking(address, timeout)?;
        stream.unblock()?;
        Ok(stream)
    }

    /// Connect a blocking socket. The timeout applies to each call.
    pub(crate) fn blocking(address: &Address, timeout: Duration) -> io::Result<Stream> {
        let (socket, at) = open(address)?;
        socket.connect_timeout(&at, timeout)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Stream { socket })
    }

    /// Make the socket non-blocking.
    pub(crate) fn unblock(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// Start to connect. The socket becomes writable when the connect has finished.
    pub fn start_connect(address: &Address) -> io::Result<Stream> {
        let (socket, at) = open(address)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&at) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Stream { socket }),
        }
    }

    /// Close both directions. Requests of io_uring on the socket end as well.
    pub(crate) fn shutdown(&self) {
        // An error means that the connection is closed already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// The result of `start_connect`.
    pub fn connect_result(&self) -> io::Result<()> {
        match self.socket.take_error()? {
            Some(error) => Err(error),
            None => self.socket.peer_addr().map(|_| ()),
        }
    }
}

impl Transport for Stream {
    const BUFFERS: bool = false;

    fn open(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<Stream> {
        let mut stream = Stream::blocking(address, timeout)?;
        if let Some(who) = &connection_options.auth {
            authenticate(&mut stream, connection_options.wire, who)?;
        }
        stream.unblock()?;
        Ok(stream)
    }

    fn start_connect(
        address: &Address,
        connection_options: &ConnectionOptions,
    ) -> Option<io::Result<Stream>> {
        connection_options.auth.is_none().then(|| Stream::start_connect(address))
    }

    fn finish_connect(&self) -> io::Result<()> {
        self.connect_result()
    }
}

impl Read for Stream {
    /// Read the available bytes. `WouldBlock` if the file contains no certificate.
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // The bare system call: the function of libc is a cancellation point, which costs more.
        Ok(rustix::net::recv(&self.socket, into, RecvFlags::empty())?.0)
    }
}

impl Write for Stream {
    /// Write what fits. `WouldBlock` if nothing does.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.socket, bytes, SendFlags::NOSIGNAL)?)
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let (mut none, flags) = (SendAncillaryBuffer::default(), SendFlags::NOSIGNAL);
        Ok(rustix::net::sendmsg(&self.socket, slices, &mut none, flags)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn open(address: &Address) -> io::Result<(Socket, SockAddr)> {
    match address {
        Address::Tcp(address) => {
            let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
            socket.set_tcp_nodelay(true)?;
            Ok((socket, SockAddr::from(*address)))
        }
        Address::Udp(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "UDP has no streams")),
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            Ok((socket, SockAddr::unix(path)?))
        }
    }
}
