//! TLS for TCP connections, by rustls.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig,
    SignatureScheme,
};

use crate::state::{tls_ciphers, tls_key, tls_p521};

/// A listener's treatment of certificates of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Ask for none.
    #[default]
    Ignored,
    /// Ask for one, and refuse a wrong one; a client may have none.
    Verified,
    /// Refuse clients without a right one.
    Required,
}

/// The files and rules of TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// The server's certificate chain (PEM).
    pub certificates: PathBuf,
    /// Its key (PEM or DER).
    pub key: PathBuf,
    /// The authorities that sign the clients' certificates (PEM). Without any, no certificate is right.
    pub authorities: Option<PathBuf>,
    /// The rule of listeners without one of their own.
    pub clients: ClientCertificates,
    /// Speak TLS 1.3 only, and not 1.2.
    pub only_1_3: bool,
    /// The cipher suites of TLS 1.2, the preferred ones first, by OpenSSL's names with colons between. `None` means
    /// all that this server has. As in OpenSSL, TLS 1.3 keeps its own suites.
    pub ciphers: Option<String>,
}

/// The server's certificate and key, with the rule of a listener. Clones share the files, so that all listeners see
/// new ones.
#[derive(Clone, Debug)]
pub struct Tls {
    shared: Arc<Shared>,
    clients: ClientCertificates,
}

#[derive(Debug)]
struct Shared {
    settings: TlsSettings,
    loaded: Mutex<Loaded>,
    errors: TlsErrors,
}

/// The connections that ended by an error of TLS.
#[derive(Debug, Default)]
pub(crate) struct TlsErrors {
    pub handshake: AtomicU64,
    pub protocol: AtomicU64,
}

/// By the rule for certificates of clients.
#[derive(Debug)]
struct Loaded {
    ignored: Arc<ServerConfig>,
    verified: Arc<ServerConfig>,
    required: Arc<ServerConfig>,
    since: Instant,
}

impl Tls {
    /// Read the files.
    pub fn read(settings: TlsSettings) -> Result<Tls, String> {
        let (loaded, clients) = (Mutex::new(load(&settings)?), settings.clients);
        let shared = Shared { settings, loaded, errors: TlsErrors::default() };
        Ok(Tls { shared: Arc::new(shared), clients })
    }

    /// The same files with another rule for certificates of clients.
    pub fn with_clients(&self, clients: ClientCertificates) -> Tls {
        Tls { shared: Arc::clone(&self.shared), clients }
    }

    /// Read the files again, for the connections from now on. If that fails, the old ones stay.
    pub fn refresh(&self) -> Result<(), String> {
        let loaded = load(&self.shared.settings)?;
        *self.loaded() = loaded;
        Ok(())
    }

    pub fn settings(&self) -> &TlsSettings {
        &self.shared.settings
    }

    /// How many seconds ago the files were read.
    pub fn age_s(&self) -> u64 {
        self.loaded().since.elapsed().as_secs()
    }

    pub(crate) fn errors(&self) -> &TlsErrors {
        &self.shared.errors
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let loaded = self.loaded();
        Arc::clone(match self.clients {
            ClientCertificates::Ignored => &loaded.ignored,
            ClientCertificates::Verified => &loaded.verified,
            ClientCertificates::Required => &loaded.required,
        })
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(settings: &TlsSettings) -> Result<Loaded, String> {
    let chain = certificates(&settings.certificates)?;
    let key = tls_key::read(&settings.key)?;
    let mut provider = rustls::crypto::ring::default_provider();
    provider.key_provider = &tls_p521::Keys;
    if let Some(names) = &settings.ciphers {
        tls_ciphers::select(names, &mut provider.cipher_suites)?;
    }
    let provider = Arc::new(provider);
    let config = |verifier: Arc<dyn ClientCertVerifier>| {
        let versions: &[_] = if settings.only_1_3 { &[&TLS13] } else { &[&TLS13, &TLS12] };
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key());
        config.map(Arc::new).map_err(|error| told(&settings.key, &error))
    };
    let authorities = settings.authorities.as_deref();
    let roots = authorities.map(roots).transpose()?;
    let verifier = |required: bool| -> Result<Arc<dyn ClientCertVerifier>, String> {
        let Some((path, roots)) = authorities.zip(roots.as_ref()) else {
            return Ok(Arc::new(NoAuthority { provider: Arc::clone(&provider), required }));
        };
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider));
        let builder = if required { builder } else { builder.allow_unauthenticated() };
        builder.build().map(|built| built as _).map_err(|error| told(path, &error))
    };
    Ok(Loaded {
        ignored: config(WebPkiClientVerifier::no_client_auth())?,
        verified: config(verifier(false)?)?,
        required: config(verifier(true)?)?,
        since: Instant::now(),
    })
}

/// The authorities that a file names.
fn roots(path: &Path) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| told(path, &error))?;
    }
    Ok(Arc::new(roots))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| told(path, &error))?;
    if chain.is_empty() {
        return Err(format!("{}: the file has no certificate", path.display()));
    }
    Ok(chain)
}

fn told(path: &Path, error: &dyn Display) -> String {
    format!("{}: {error}", path.display())
}

/// Accepts no certificate, since no authority is known. OpenSSL, and so memcached, does the same.
#[derive(Debug)]
struct NoAuthority {
    provider: Arc<CryptoProvider>,
    required: bool,
}

const UNKNOWN: rustls::Error = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);

impl ClientCertVerifier for NoAuthority {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        self.required
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Err(UNKNOWN)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(UNKNOWN)
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(UNKNOWN)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
