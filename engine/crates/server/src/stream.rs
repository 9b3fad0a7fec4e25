//! A connected socket: TCP, Unix, or TLS over TCP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustls::{ServerConnection, StreamOwned};

use crate::tls::Tls;

#[derive(Debug)]
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    /// A TCP connection, its handshake still to come.
    pub fn tls(socket: TcpStream, tls: &Tls) -> io::Result<Stream> {
        let connection =
            ServerConnection::new(std::sync::Arc::clone(&tls.0)).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(connection, socket))))
    }

    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
            Stream::Tls(stream) => stream.sock.set_nonblocking(nonblocking),
        }
    }

    /// Another handle of the socket, to end it from elsewhere.
    pub fn plug(&self) -> io::Result<Plug> {
        self.as_fd().try_clone_to_owned().map(Plug)
    }

    /// End both directions; a thread that waits on the socket wakes up.
    pub fn shutdown(&self) {
        // A socket that the peer has closed already cannot be shut down: it is what we want.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tls(stream) => stream.sock.shutdown(Shutdown::Both),
        };
    }

    /// Say that nothing more comes. Without it, TLS takes the end of a connection for an attack (RFC
    /// 8446, 6.1), and OpenSSL for an error.
    pub fn say_goodbye(&mut self) {
        if let Stream::Tls(stream) = self {
            stream.conn.send_close_notify();
            // The peer may be gone already, or not read: the connection ends either way.
            let _ = stream.flush();
        }
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(into),
            Stream::Unix(stream) => stream.read(into),
            Stream::Tls(stream) => stream.read(into),
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
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Send what TLS still holds of what was written; sockets hold nothing.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
            Stream::Tls(stream) => stream.flush(),
        }
    }

    /// What was received and decrypted but not read, bytes or their end: no socket tells of it.
    pub fn holds_input(&mut self) -> bool {
        match self {
            Stream::Tcp(_) | Stream::Unix(_) => false,
            Stream::Tls(stream) => stream
                .conn
                .process_new_packets()
                .is_ok_and(|state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
        }
    }
}

/// What ends a connection that another thread serves.
pub struct Plug(OwnedFd);

impl Plug {
    pub fn pull(&self) {
        // The peer may have closed it already.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// Bytes that were read and are not carried out yet.
#[derive(Debug)]
pub struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

const ROOM_BYTES: usize = 16 * 1024;

impl Input {
    pub fn new() -> Input {
        Input { bytes: vec![0; ROOM_BYTES], filled: 0 }
    }

    /// Where to read to; the buffer grows while one command is longer than it.
    pub fn room(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.filled..]
    }

    pub fn filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Take bytes that were read elsewhere.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.filled < bytes.len() {
            self.bytes.resize((self.filled + bytes.len()).next_power_of_two(), 0);
        }
        self.bytes[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    pub fn pending(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Drop what was carried out; a buffer that a large value made long shrinks again.
    pub fn consume(&mut self, bytes: usize) {
        self.bytes.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        if self.filled == 0 && self.bytes.len() > 4 * ROOM_BYTES {
            self.bytes = vec![0; ROOM_BYTES];
        }
    }
}
