//! TLS over a TCP connection, which counts its errors.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use rustls::{ServerConnection, StreamOwned};

use crate::state::tls::Tls;

#[derive(Debug)]
pub struct TlsStream {
    stream: StreamOwned<ServerConnection, TcpStream>,
    tls: Tls,
    failed: bool,
}

impl TlsStream {
    /// The handshake happens with the first reads.
    pub fn new(socket: TcpStream, tls: &Tls) -> io::Result<TlsStream> {
        let connection = ServerConnection::new(tls.config()).map_err(io::Error::other)?;
        let stream = StreamOwned::new(connection, socket);
        Ok(TlsStream { stream, tls: tls.clone(), failed: false })
    }

    pub fn socket(&self) -> &TcpStream {
        &self.stream.sock
    }

    pub fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(into);
        read.inspect_err(|error| self.count(error))
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

    /// Whether there are decrypted bytes, or the end of the stream, that were not read yet.
    pub fn has_buffered_input(&mut self) -> bool {
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
