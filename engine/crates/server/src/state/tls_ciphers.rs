//! The choice of cipher suites by OpenSSL's names.

use rustls::crypto::ring::cipher_suite as suite;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// The suites of TLS 1.2 that this server has.
const NAMED: [(&str, SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Keep those suites of TLS 1.2 that are named, in that order, and all of TLS 1.3. Names have colons, commas or
/// spaces between. An error names the suite that this server has not.
pub fn select(names: &str, suites: &mut Vec<SupportedCipherSuite>) -> Result<(), String> {
    let is_1_2 = |suite: &SupportedCipherSuite| is_version(suite, &rustls::version::TLS12);
    suites.retain(|suite| !is_1_2(suite));
    for name in names.split([':', ',', ' ']).filter(|name| !name.is_empty()) {
        let known = NAMED.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let all = NAMED.map(|(known, _)| known).join(":");
            format!("ssl_ciphers: this server has no {name}; it has {all}")
        })?;
        suites.push(known.1);
    }
    if suites.iter().any(is_1_2) {
        Ok(())
    } else {
        Err("ssl_ciphers: no cipher is named".to_owned())
    }
}

fn is_version(suite: &SupportedCipherSuite, version: &SupportedProtocolVersion) -> bool {
    suite.version() == version
}
