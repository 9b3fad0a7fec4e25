//! Signatures with keys of the curve P-521, which ring has not.

use std::sync::Arc;

use p521::SecretKey;
use p521::ecdsa::signature::Signer as _;
use p521::ecdsa::{Signature, SigningKey};
use p521::pkcs8::{DecodePrivateKey, EncodePublicKey};
use rustls::crypto::KeyProvider;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::{Signer, SigningKey as AnySigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

/// The name of the curve in a key in DER: the object identifier 1.3.132.0.35.
const CURVE: &[u8] = &[0x06, 0x05, 0x2B, 0x81, 0x04, 0x00, 0x23];

/// Keys of P-521, and all that ring has.
#[derive(Debug)]
pub struct Keys;

impl KeyProvider for Keys {
    fn load_private_key(
        &self,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<dyn AnySigningKey>, Error> {
        let der = key.secret_der();
        if !der.windows(CURVE.len()).any(|part| part == CURVE) {
            return any_supported_type(&key);
        }
        let secret = match key {
            PrivateKeyDer::Pkcs8(_) => SecretKey::from_pkcs8_der(der).ok(),
            _ => SecretKey::from_sec1_der(der).ok(),
        };
        let read = secret.and_then(|secret| {
            let public = secret.public_key().to_public_key_der().ok()?.into_vec();
            let signing = SigningKey::from_slice(&secret.to_bytes()).ok()?;
            Some(Arc::new(Key { signing: Arc::new(signing), public }))
        });
        read.map(|key| key as _).ok_or_else(|| Error::General("no key of P-521".to_owned()))
    }
}

struct Key {
    signing: Arc<SigningKey>,
    public: Vec<u8>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a key of P-521")
    }
}

impl AnySigningKey for Key {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let takes = offered.contains(&SignatureScheme::ECDSA_NISTP521_SHA512);
        takes.then(|| Box::new(P521Signer(Arc::clone(&self.signing))) as _)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(SubjectPublicKeyInfoDer::from(&self.public[..]))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

struct P521Signer(Arc<SigningKey>);

impl std::fmt::Debug for P521Signer {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a signer of P-521")
    }
}

impl Signer for P521Signer {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let signature: Result<Signature, _> = self.0.try_sign(message);
        match signature {
            Ok(signature) => Ok(signature.to_der().as_bytes().to_vec()),
            Err(error) => Err(Error::General(error.to_string())),
        }
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP521_SHA512
    }
}
