//! TLS over a socket, with rustls.

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConnection};

use super::login::authenticate;
use super::stream::Stream;
use super::traits::Transport;
use crate::options::{Address, ConnectionOptions, HostPort, TlsTrust, is_ca_of_server};

/// A TLS connection.
pub struct TlsStream {
    tls: ClientConnection,
    socket: Stream,
    /// Decrypted bytes that have not been read.
    unread: usize,
}

impl Transport for TlsStream {
    const BUFFERS: bool = true;

    fn open(
        address: &Address,
        connection_options: &ConnectionOptions,
        timeout: Duration,
    ) -> io::Result<TlsStream> {
        let Some(TlsTrust { config, name }) = &connection_options.tls else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let name = name.clone().map_or_else(|| server_name(address), Ok)?;
        let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut socket = Stream::blocking(address, timeout)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(handshake_error)?;
        }
        let mut stream = TlsStream { tls, socket, unread: 0 };
        if let Some(who) = &connection_options.auth {
            authenticate(&mut stream, connection_options.wire, who)?;
        }
        stream.socket.unblock()?;
        Ok(stream)
    }

    fn has_buffered_input(&self) -> bool {
        self.unread > 0
    }

    fn flush_output(&mut self) -> io::Result<bool> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl Read for TlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.tls.reader().read(into) {
                Ok(bytes) => {
                    self.unread = self.unread.saturating_sub(bytes);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            let state = self.tls.process_new_packets();
            self.unread = state.map_err(io::Error::other)?.plaintext_bytes_to_read();
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Buffered output goes first, so that the buffer never holds more than one write.
        if !self.flush_output()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write(bytes)?;
        self.flush_output()?;
        Ok(taken)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.flush_output()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write_vectored(slices)?;
        self.flush_output()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush_output().map(|_| ())
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The name that the server's certificate must have: the host as it was given.
fn server_name(address: &Address) -> io::Result<ServerName<'static>> {
    let host = match address {
        Address::Tcp(HostPort::Ip(address)) | Address::Udp(HostPort::Ip(address)) => {
            return Ok(ServerName::from(address.ip()));
        }
        Address::Tcp(HostPort::Name(name)) | Address::Udp(HostPort::Name(name)) => {
            name.rsplit_once(':').map_or(name.as_str(), |(host, _)| host)
        }
        Address::Unix(_) => "localhost",
    };
    ServerName::try_from(host.to_owned()).map_err(io::Error::other)
}

/// A clear message for the usual reasons why a handshake fails.
fn handshake_error(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let text = match cause {
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS",
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is not signed by a trusted certificate"
        }
        Some(rustls::Error::InvalidCertificate(why)) if is_ca_of_server(why) => {
            "the server uses the certificate of a CA: trust this very certificate, or create one \
             with CA:FALSE"
        }
        _ => return error,
    };
    io::Error::other(text)
}
