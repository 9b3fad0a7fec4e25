//! TLS for TCP connections, by rustls.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The server's certificate and key. Clones share them, so that all listeners see new ones.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    certificates: PathBuf,
    key: PathBuf,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    since: Instant,
}

impl Tls {
    /// Read a certificate chain and its key from PEM files.
    pub fn read(certificates: &Path, key: &Path) -> Result<Tls, String> {
        let loaded = Mutex::new(load(certificates, key)?);
        let (certificates, key) = (certificates.to_owned(), key.to_owned());
        Ok(Tls(Arc::new(Shared { certificates, key, loaded })))
    }

    /// Read the files again, for the connections from now on. If that fails, the old certificate stays.
    pub fn refresh(&self) -> Result<(), String> {
        let loaded = load(&self.0.certificates, &self.0.key)?;
        *self.loaded() = loaded;
        Ok(())
    }

    /// The file of the certificate chain.
    pub fn certificates(&self) -> &Path {
        &self.0.certificates
    }

    /// The file of the key.
    pub fn key(&self) -> &Path {
        &self.0.key
    }

    /// How many seconds ago the files were read.
    pub fn age_s(&self) -> u64 {
        self.loaded().since.elapsed().as_secs()
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.loaded().config)
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(certificates: &Path, key: &Path) -> Result<Loaded, String> {
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("{}: {error}", certificates.display()))?;
    if chain.is_empty() {
        return Err(format!("{}: the file has no certificate", certificates.display()));
    }
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| format!("{}: {error}", key.display()))?;
    Ok(Loaded { config: Arc::new(config), since: Instant::now() })
}
