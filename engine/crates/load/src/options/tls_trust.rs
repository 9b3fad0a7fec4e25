//! How a client encrypts: which certificates it trusts, and which are its own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};

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

/// A client's TLS: the certificates that it trusts, the server's name, the client's own certificate.
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
        let verifier = Arc::new(Verifier::read(&files.trust)?);
        let verified = builder()?.dangerous().with_custom_certificate_verifier(verifier);
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

/// Whether an error of rustls is that a server uses the certificate of a CA.
pub(crate) fn is_ca_of_server(why: &CertificateError) -> bool {
    format!("{why:?}").contains("CaUsedAsEndEntity")
}

/// Accepts what the usual rules accept, and a certificate that is itself in the trusted file; without
/// rules, every certificate. It always checks that the server holds the certificate's key.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    rules: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    fn read(trust: &str) -> Result<Verifier, String> {
        let provider = Arc::new(ring::default_provider());
        if trust == "unverified" {
            return Ok(Verifier { provider, rules: None, trusted: Vec::new() });
        }
        let file = Path::new(trust);
        let trusted = certificates(file)?;
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| named(file, &error))?;
        }
        let rules =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let rules = rules.build().map_err(|error| named(file, &error))?;
        Ok(Verifier { provider, rules: Some(rules), trusted })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(rules) = &self.rules else { return Ok(ServerCertVerified::assertion()) };
        match rules.verify_server_cert(certificate, between, name, ocsp, now) {
            // `openssl req -x509` makes such a certificate; its dates have been verified.
            Err(rustls::Error::InvalidCertificate(why))
                if is_ca_of_server(&why) && self.trusted.contains(certificate) =>
            {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
