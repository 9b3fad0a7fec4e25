//! The key of the server's certificate, in each form that OpenSSL reads.

use std::path::Path;

use rustls::crypto::KeyProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

use crate::state::tls_p521::Keys;

/// Read a key: PEM under any of its labels, or DER. An error names the file and the kinds of keys that work.
pub fn read(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| told(&error))?;
    let pem = PrivateKeyDer::from_pem_slice(&bytes);
    let der = pem.map_or(bytes, |key| key.secret_der().to_vec());
    // The content may be of another form than the label says.
    let forms: [PrivateKeyDer<'static>; 3] = [
        PrivatePkcs8KeyDer::from(der.clone()).into(),
        PrivatePkcs1KeyDer::from(der.clone()).into(),
        PrivateSec1KeyDer::from(der).into(),
    ];
    let mut readable =
        forms.into_iter().filter(|key| Keys.load_private_key(key.clone_key()).is_ok());
    readable.next().ok_or_else(|| {
        told(&"the server cannot use this key; it needs an RSA key of 2048 to 8192 bits, or one of P-256, P-384, P-521 \
               or Ed25519, without a passphrase")
    })
}
