//! TLS over a TCP connection, which counts its errors.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::{ServerConnection, StreamOwned};

use crate::state::tls::Tls;

/// The number of bytes that are read at once to be decrypted.
const ENCRYPTED_BYTES: usize = 64 * 1024;
/// The number of them beyond the room for decrypted bytes: a record, so that no record comes in pieces.
const MORE_BYTES: usize = 16 * 1024;

thread_local! {
    /// The bytes of a read. It is empty between two reads.
    static ENCRYPTED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub struct TlsStream {
    stream: StreamOwned<ServerConnection, TcpStream>,
    tls: Tls,
    /// Bytes that were read, and wait until there is room for them when they are decrypted.
    waiting: Vec<u8>,
    failed: bool,
}

impl TlsStream {
    /// The handshake happens with the first reads.
    pub fn new(socket: TcpStream, tls: &Tls) -> io::Result<TlsStream> {
        let connection = ServerConnection::new(tls.config()).map_err(io::Error::other)?;
        let stream = StreamOwned::new(connection, socket);
        Ok(TlsStream { stream, tls: tls.clone(), waiting: Vec::new(), failed: false })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.stream.sock
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = if self.stream.conn.is_handshaking() {
            self.stream.read(into)
        } else {
            ENCRYPTED.with_borrow_mut(|buffer| self.read_many(into, buffer))
        };
        read.inspect_err(|error| self.count(error))
    }

    /// Read as many bytes as fit into `into` with one system call, where rustls alone would take one for each 4 KiB.
    fn read_many(&mut self, into: &mut [u8], encrypted: &mut Vec<u8>) -> io::Result<usize> {
        let StreamOwned { conn, sock, .. } = &mut self.stream;
        match conn.reader().read(into) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            read => return read,
        }
        encrypted.resize(ENCRYPTED_BYTES, 0);
        let bytes = match std::mem::take(&mut self.waiting) {
            none if none.is_empty() => {
                let most = (into.len() + MORE_BYTES).min(ENCRYPTED_BYTES);
                sock.read(&mut encrypted[..most])?
            }
            waiting => {
                encrypted[..waiting.len()].copy_from_slice(&waiting);
                waiting.len()
            }
        };
        let mut arrived = &encrypted[..bytes];
        let mut filled = 0;
        loop {
            let taken = conn.read_tls(&mut arrived)?;
            if let Err(error) = conn.process_new_packets() {
                // The peer may not read the alert, and the connection ends in any case.
                let _ = conn.write_tls(sock);
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            match conn.reader().read(&mut into[filled..]) {
                Ok(bytes) => filled += bytes,
                Err(_) if filled > 0 => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            // Nothing is taken behind the end of the stream.
            if arrived.is_empty() || taken == 0 {
                break;
            }
            // rustls takes nothing more while it keeps a record decrypted.
            if filled == into.len() {
                self.waiting.extend_from_slice(arrived);
                break;
            }
        }
        match filled {
            0 if conn.wants_read() => Err(ErrorKind::Interrupted.into()),
            _ => Ok(filled),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        written.inspect_err(|error| self.count(error))
    }

    pub fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }

    pub fn send_close_notify(&mut self) {
        self.stream.conn.send_close_notify();
        // The peer may be gone, or not read: the connection ends in any case.
        let _ = self.stream.flush();
    }

    /// Whether there are bytes to be decrypted, decrypted ones, or the end of the stream, that were not read yet.
    pub fn has_buffered_input(&mut self) -> bool {
        if !self.waiting.is_empty() {
            return true;
        }
        let state = self.stream.conn.process_new_packets();
        state.is_ok_and(|state| state.plaintext_bytes_to_read() > 0 || state.peer_has_closed())
    }

    /// Count a connection that ends by this error.
    fn count(&mut self, error: &io::Error) {
        if self.failed || !matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof)
        {
            return;
        }
        self.failed = true;
        let errors = self.tls.errors();
        let counter: &AtomicU64 =
            if self.stream.conn.is_handshaking() { &errors.handshake } else { &errors.protocol };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
