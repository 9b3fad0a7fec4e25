//! How a client encrypts: which certificates it trusts, and which are its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// How a client encrypts, as its user says it.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// A PEM file with the certificates to trust, or `unverified`.
    pub trust: String,
    /// The name that the server's certificate must have, and which is sent to it; none: its address.
    pub name: Option<String>,
    /// PEM files of the client's own certificate and its key.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// How a client encrypts: what it trusts, whom it expects, who it is.
#[derive(Clone)]
pub struct TlsTrust {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: Option<ServerName<'static>>,
}

impl fmt::Debug for TlsTrust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl TlsTrust {
    /// Read the files. Certificates of servers must be signed by a trusted one and have the right name,
    /// unless the trust is `unverified`: that is for servers on the user's own machine.
    pub fn read(files: &TlsFiles) -> Result<TlsTrust, String> {
        let verified = if files.trust == "unverified" {
            let verifier = Arc::new(AcceptAnyCertificate(Arc::new(ring::default_provider())));
            builder()?.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder()?.with_root_certificates(roots(Path::new(&files.trust))?)
        };
        let config = match &files.client {
            None => verified.with_no_client_auth(),
            Some((certificate, key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
                let own = certificates(certificate)?;
                verified
                    .with_client_auth_cert(own, key)
                    .map_err(|error| named(certificate, &error))?
            }
        };
        let name = files.name.clone().map(ServerName::try_from).transpose();
        let name = name.map_err(|error| format!("{:?}: {error}", files.name.as_deref()))?;
        Ok(TlsTrust { config: Arc::new(config), name })
    }
}

fn roots(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| named(file, &error))?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| named(file, &error))?;
    let found: Result<Vec<_>, _> = read.collect();
    let found = found.map_err(|error| named(file, &error))?;
    if found.is_empty() { Err(named(file, &"the file contains no certificate")) } else { Ok(found) }
}

fn named(file: &Path, error: &dyn fmt::Display) -> String {
    format!("certificates of {}: {error}", file.display())
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())
}

/// Accepts every certificate. It still checks that the server holds the certificate's key.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
