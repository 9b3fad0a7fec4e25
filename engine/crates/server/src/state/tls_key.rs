//! The key of the server's certificate, in each form that OpenSSL reads.

use std::path::Path;

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};

/// Read a key: PEM under any of its labels, or DER. An error names the file and the kinds of keys that work.
pub fn read(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| told(&error))?;
    let der = match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => key.secret_der().to_vec(),
        Err(_) if bytes.first() == Some(&DER_SEQUENCE) => bytes,
        Err(error) => return Err(told(&error)),
    };
    if der.windows(P_521.len()).any(|part| part == P_521) {
        return Err(told(
            &"the key is of the curve P-521, in which the TLS library here cannot sign; make a key and a \
                          certificate of P-384: openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:secp384r1",
        ));
    }
    // The content may be of another form than the label says.
    let forms: [PrivateKeyDer<'static>; 3] = [
        PrivatePkcs8KeyDer::from(der.clone()).into(),
        PrivatePkcs1KeyDer::from(der.clone()).into(),
        PrivateSec1KeyDer::from(der).into(),
    ];
    let mut readable = forms.into_iter().filter(|key| any_supported_type(key).is_ok());
    readable.next().ok_or_else(|| {
        told(&"the server cannot use this key; it needs an RSA key of 2048 to 8192 bits, or one of P-256, P-384 or \
               Ed25519, without a passphrase")
    })
}

/// The name of the curve P-521 in a key in DER: the object identifier 1.3.132.0.35.
const P_521: &[u8] = &[0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23];

/// The first byte of every key in DER.
const DER_SEQUENCE: u8 = 0x30;
