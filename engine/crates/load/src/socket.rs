//! Non-blocking stream sockets: TCP or Unix.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    /// Read `host:port` or `unix:/path`. An error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Address, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Address::Unix(PathBuf::from(path)));
        }
        let mut found = text.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
        found.next().map(Address::Tcp).ok_or_else(|| format!("{text}: no such host"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => write!(out, "{address}"),
            Address::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

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
    pub fn begin(address: &Address) -> io::Result<Stream> {
        let (socket, at) = open(address)?;
        socket.set_nonblocking(true)?;
        match socket.connect(&at) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
            _ => Ok(Stream { socket }),
        }
    }

    /// How a connect that was begun ended.
    pub fn connected(&self) -> io::Result<()> {
        match self.socket.take_error()? {
            Some(error) => Err(error),
            None => self.socket.peer_addr().map(|_| ()),
        }
    }
}

impl Read for Stream {
    /// Read what is there; `WouldBlock` when nothing is.
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.read(into)
    }
}

impl Write for Stream {
    /// Write what fits; `WouldBlock` when nothing does.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
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
        Address::Unix(path) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            Ok((socket, SockAddr::unix(path)?))
        }
    }
}
