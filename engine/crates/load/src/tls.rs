//! TLS over a socket, by rustls.

use std::fmt;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore,
    SignatureScheme,
};

use crate::access::authenticate;
use crate::client::Way;
use crate::socket::{Address, Stream};
use crate::transport::Transport;

/// Whom to trust.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl Tls {
    /// Trust what the certificates of this PEM file have signed, for the address that is used.
    pub fn trusting(file: &Path) -> Result<Tls, String> {
        let named =
            |error: &dyn fmt::Display| format!("certificates of {}: {error}", file.display());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| named(&error))? {
            let certificate = certificate.map_err(|error| named(&error))?;
            roots.add(certificate).map_err(|error| named(&error))?;
        }
        if roots.is_empty() {
            return Err(named(&"there are none"));
        }
        let config = builder()?.with_root_certificates(roots).with_no_client_auth();
        Ok(Tls { config: Arc::new(config) })
    }

    /// Trust whoever answers: for servers on one's own machine.
    pub fn unverified() -> Result<Tls, String> {
        let verifier = Arc::new(Anybody(Arc::new(ring::default_provider())));
        let config =
            builder()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        Ok(Tls { config: Arc::new(config) })
    }
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// A TLS connection.
pub struct TlsStream {
    tls: ClientConnection,
    socket: Stream,
    /// Bytes that are decrypted and not read.
    unread: usize,
}

impl Transport for TlsStream {
    const HOLDS: bool = true;

    fn enter(address: &Address, way: &Way, timeout: Duration) -> io::Result<TlsStream> {
        let Some(Tls { config }) = &way.tls else { return Err(io::ErrorKind::InvalidInput.into()) };
        let name = match address {
            Address::Tcp(address) | Address::Udp(address) => ServerName::from(address.ip()),
            Address::Unix(_) => ServerName::try_from("localhost").map_err(io::Error::other)?,
        };
        let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
        let mut socket = Stream::blocking(address, timeout)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).map_err(told)?;
        }
        let mut stream = TlsStream { tls, socket, unread: 0 };
        if let Some(who) = &way.auth {
            authenticate(&mut stream, way.wire, who)?;
        }
        stream.socket.unblock()?;
        Ok(stream)
    }

    fn has_unread(&self) -> bool {
        self.unread > 0
    }

    fn push(&mut self) -> io::Result<bool> {
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
        // What is held back goes first, so that it never grows beyond one write.
        if !self.push()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write(bytes)?;
        self.push()?;
        Ok(taken)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if !self.push()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let taken = self.tls.writer().write_vectored(pieces)?;
        self.push()?;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.push().map(|_| ())
    }
}

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Why a handshake failed, in words where people run into it.
fn told(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let text = match cause {
        Some(rustls::Error::InvalidMessage(_)) => "the server does not speak TLS",
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            "the server's certificate is signed by nobody that is trusted"
        }
        Some(rustls::Error::InvalidCertificate(why))
            if format!("{why:?}").contains("CaUsedAsEndEntity") =>
        {
            "the server shows a CA's certificate as its own: make one with CA:FALSE, or trust \
             `unverified`"
        }
        _ => return error,
    };
    io::Error::other(text)
}

/// Believes every certificate; that the other side holds its key is seen to all the same.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
