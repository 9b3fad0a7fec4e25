//! TLS for TCP connections, by rustls.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The server's certificate and key.
#[derive(Clone, Debug)]
pub struct Tls(pub(crate) Arc<rustls::ServerConfig>);

impl Tls {
    /// Read a certificate chain and its key from PEM files.
    pub fn read(certificates: &Path, key: &Path) -> Result<Tls, String> {
        let chain = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("{}: {error}", certificates.display()))?;
        if chain.is_empty() {
            return Err(format!("{}: the file has no certificate", certificates.display()));
        }
        let secret = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| format!("{}: {error}", key.display()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| format!("{}: {error}", key.display()))?;
        Ok(Tls(Arc::new(config)))
    }
}
