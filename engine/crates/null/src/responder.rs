//! The null responder: it sends the same reply to every request.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

use cachemark_load::Address;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use socket2::Socket;

use crate::repeated_bytes::{Cursor, RepeatedBytes};

const READ_BYTES: usize = 64 * 1024;
const MAX_EVENTS: usize = 256;
const LISTENER: u64 = u64::MAX;
/// How often the stop flag is checked.
const STOP_CHECK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// How the responder counts the requests that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestCounting {
    /// Each request is one line: reads, deletes and the like.
    Lines,
    /// Each request has this many bytes.
    Bytes(usize),
}

impl RequestCounting {
    /// The number of requests that end in `bytes`. `left` counts the bytes of the incomplete request
    /// before and after the call.
    fn count(self, bytes: &[u8], left: &mut usize) -> usize {
        match self {
            RequestCounting::Lines => memchr::memchr_iter(b'\n', bytes).count(),
            RequestCounting::Bytes(each) => {
                let whole = *left + bytes.len();
                *left = whole % each;
                whole / each
            }
        }
    }
}

struct Connection {
    socket: Socket,
    cursor: Cursor,
    left: usize,
    blocked: bool,
}

/// A server with one thread that answers without parsing.
pub struct Responder {
    epoll: OwnedFd,
    listener: Socket,
    address: String,
    connections: Vec<Option<Connection>>,
    replies: RepeatedBytes,
    reply_bytes: usize,
    counting: RequestCounting,
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(path) = self.address.strip_prefix("unix:") {
            // Somebody may have removed it already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Responder {
    /// Start to listen. Port 0: the system chooses one.
    pub fn listen(
        address: &Address,
        reply: &[u8],
        counting: RequestCounting,
    ) -> io::Result<Responder> {
        let (listener, address) = match address {
            Address::Tcp(host) => {
                let listener = TcpListener::bind(&host.resolve()?[..])?;
                let bound = listener.local_addr()?.to_string();
                (Socket::from(listener), bound)
            }
            Address::Udp(_) => return Err(io::ErrorKind::Unsupported.into()),
            Address::Unix(path) => (
                OwnedFd::from(UnixListener::bind(path)?).into(),
                format!("unix:{}", path.display()),
            ),
        };
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Responder {
            epoll,
            listener,
            address,
            connections: Vec::new(),
            replies: RepeatedBytes::of(reply),
            reply_bytes: reply.len(),
            counting,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Answer requests until `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut scratch = vec![0; READ_BYTES];
        let mut room = [const { MaybeUninit::<Event>::uninit() }; MAX_EVENTS];
        while !stop.load(Ordering::Relaxed) {
            let (events, _) = match epoll::wait(&self.epoll, &mut room, Some(&STOP_CHECK_INTERVAL))
            {
                Ok(waited) => waited,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            for event in events {
                match event.data.u64() {
                    LISTENER => self.accept()?,
                    number => self.serve(number as usize, &mut scratch)?,
                }
            }
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            if !self.address.starts_with("unix:") {
                socket.set_tcp_nodelay(true)?;
            }
            let free = self.connections.iter().position(Option::is_none);
            let number = free.unwrap_or(self.connections.len());
            epoll::add(&self.epoll, &socket, EventData::new_u64(number as u64), EventFlags::IN)?;
            let connection =
                Connection { socket, cursor: Cursor::default(), left: 0, blocked: false };
            match free {
                Some(number) => self.connections[number] = Some(connection),
                None => self.connections.push(Some(connection)),
            }
        }
    }

    fn serve(&mut self, number: usize, scratch: &mut [u8]) -> io::Result<()> {
        let Some(connection) = &mut self.connections[number] else { return Ok(()) };
        if !connection.blocked {
            match connection.socket.read(scratch) {
                Ok(0) => return self.close(number),
                Ok(bytes) => {
                    let requests = self.counting.count(&scratch[..bytes], &mut connection.left);
                    connection.cursor.add_owed(requests * self.reply_bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) => return self.close(number),
            }
        }
        let Ok(written) = self.replies.write(&mut connection.cursor, &connection.socket) else {
            return self.close(number);
        };
        if connection.blocked == written {
            connection.blocked = !written;
            let flags = if written { EventFlags::IN } else { EventFlags::OUT };
            let data = EventData::new_u64(number as u64);
            epoll::modify(&self.epoll, connection.socket.as_fd(), data, flags)?;
        }
        Ok(())
    }

    /// Dropping the socket removes it from epoll.
    fn close(&mut self, number: usize) -> io::Result<()> {
        self.connections[number] = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_across_reads() {
        let mut left = 0;
        assert_eq!(RequestCounting::Lines.count(b"get a\r\nge", &mut left), 1);
        assert_eq!(RequestCounting::Lines.count(b"t b\r\n", &mut left), 1);
        let six = RequestCounting::Bytes(6);
        assert_eq!([4, 1, 8, 5].map(|n| six.count(&vec![b'\n'; n], &mut left)), [0, 0, 2, 1]);
    }
}
