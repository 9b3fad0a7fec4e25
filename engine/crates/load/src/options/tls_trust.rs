//! Which certificates a client trusts.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Which server certificates a client accepts.
#[derive(Clone)]
pub struct TlsTrust {
    pub(crate) config: Arc<ClientConfig>,
}

impl fmt::Debug for TlsTrust {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Tls")
    }
}

impl TlsTrust {
    /// Accept certificates that are signed by one in this PEM file and name the address in use.
    pub fn from_ca_file(file: &Path) -> Result<TlsTrust, String> {
        let named =
            |error: &dyn fmt::Display| format!("certificates of {}: {error}", file.display());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(file).map_err(|error| named(&error))? {
            let certificate = certificate.map_err(|error| named(&error))?;
            roots.add(certificate).map_err(|error| named(&error))?;
        }
        if roots.is_empty() {
            return Err(named(&"the file contains no certificate"));
        }
        let config = builder()?.with_root_certificates(roots).with_no_client_auth();
        Ok(TlsTrust { config: Arc::new(config) })
    }

    /// Accept every certificate: for servers on the user's own machine.
    pub fn unverified() -> Result<TlsTrust, String> {
        let verifier = Arc::new(AcceptAnyCertificate(Arc::new(ring::default_provider())));
        let config =
            builder()?.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        Ok(TlsTrust { config: Arc::new(config) })
    }
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
