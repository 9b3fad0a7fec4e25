//! Non-blocking TCP and Unix sockets.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use socket2::{SockAddr, Socket, Type};

use super::login::authenticate;
use super::traits::{Transport, not_connected};
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

    /// Connect a blocking socket, to the first place of a name that can be reached. The timeout applies to each call.
    pub(crate) fn blocking(address: &Address, timeout: Duration) -> io::Result<Stream> {
        let mut connected = Err(not_connected());
        for at in places(address)? {
            connected = Stream::blocking_at(&at, timeout);
            if connected.is_ok() {
                break;
            }
        }
        connected
    }

    fn blocking_at(at: &SockAddr, timeout: Duration) -> io::Result<Stream> {
        let socket = socket_for(at)?;
        socket.connect_timeout(at, timeout)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(Stream { socket })
    }

    /// Make the socket non-blocking.
    pub(crate) fn unblock(&self) -> io::Result<()> {
        self.socket.set_nonblocking(true)
    }

    /// Start to connect to an address without a name. The socket becomes writable when the connect has finished.
    fn start_connect_to(address: &Address) -> io::Result<Stream> {
        let at = places(address)?.into_iter().next().ok_or_else(not_connected)?;
        let socket = socket_for(&at)?;
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
        // A name server may take seconds. The other connections must not wait for it, so this connect has a thread
        // of its own. Names are resolved at each reconnect, because a server that comes back may be elsewhere.
        let takes_steps = connection_options.auth.is_some() || address.is_named();
        (!takes_steps).then(|| Stream::start_connect_to(address))
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
    /// Write as many bytes as fit. `WouldBlock` if none do.
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

/// Where an address is now. It has several places if its name does.
fn places(address: &Address) -> io::Result<Vec<SockAddr>> {
    match address {
        Address::Tcp(host) => Ok(host.resolve()?.into_iter().map(SockAddr::from).collect()),
        Address::Udp(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "UDP has no streams")),
        Address::Unix(path) => Ok(vec![SockAddr::unix(path)?]),
    }
}

fn socket_for(at: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(at.domain(), Type::STREAM, None)?;
    if !at.is_unix() {
        socket.set_tcp_nodelay(true)?;
    }
    Ok(socket)
}
