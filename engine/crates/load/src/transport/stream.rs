//! Non-blocking stream sockets: TCP or Unix.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::{Domain, SockAddr, Socket, Type};

use super::login::authenticate;
use super::traits::Transport;
use crate::options::{Address, ConnectionOptions};

/// A connected, or connecting, socket that never blocks.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
}

impl Stream {
    /// Connect, waiting at most so long.
    pub fn connect(address: &Address, timeout: Duration) -> io::Result<Stream> {
        let stream = Stream::blocking(address, timeout)?;
        stream.unblock()?;
        Ok(stream)
    }

    /// A connected socket that blocks, at most so long.
    pub(crate) fn blocking(address: &Address, timeout: Duration) -> io::Result<Stream> {
        let (socket, at) = open(address)?;
        socket.connect_timeout(&at, timeout)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Stream { socket })
    }

    /// It does not block from now on.
    pub(crate) fn unblock(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// Begin to connect; the socket is writable once it has, or has failed.
    pub fn start_connect(address: &Address) -> io::Result<Stream> {
        let (socket, at) = open(address)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&at) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Stream { socket }),
        }
    }

    /// End both directions, for the other side and for the kernel.
    pub(crate) fn shutdown(&self) {
        // One that is gone already needs no end.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// How a connect that was begun ended.
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
    /// Read what is there; `WouldBlock` when nothing is.
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        // The system call itself: libc's has a place at which threads may be cancelled around it.
        Ok(rustix::net::recv(&self.socket, into, RecvFlags::empty())?.0)
    }
}

impl Write for Stream {
    /// Write what fits; `WouldBlock` when nothing does.
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
        Address::Udp(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "no stream over UDP")),
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            Ok((socket, SockAddr::unix(path)?))
        }
    }
}
