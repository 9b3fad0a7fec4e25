//! The options of `-o` for TLS, as a table.

use cachemark_server::ClientCertificates;

use crate::memcached::configuration::Configuration;
use crate::memcached::extended_option::Takes::{Checked, Nothing, Value};
use crate::memcached::extended_option::{Extended, ignored, works};
use crate::memcached::numbers::unsigned;

pub static TABLE: [Extended; 10] = [
    works(
        "ssl_chain_cert",
        Value("Missing ssl_chain_cert argument", "", |text, to| {
            to.tls_certificate = Some(text.into());
            true
        }),
    ),
    works(
        "ssl_key",
        Value("Missing ssl_key argument", "", |text, to| {
            to.tls_key = Some(text.into());
            true
        }),
    ),
    works(
        "ssl_ca_cert",
        Value("Missing ssl_ca_cert argument", "", |text, to| {
            to.tls_authorities = Some(text.into());
            true
        }),
    ),
    works("ssl_verify_mode", Checked("Missing ssl_verify_mode argument", verify_mode)),
    works("ssl_min_version", Checked("Missing ssl_min_version argument", tls_version)),
    works(
        "ssl_ciphers",
        Value("Missing ssl_ciphers argument", "", |text, to| {
            to.tls_ciphers = Some(text.to_owned());
            true
        }),
    ),
    // The form of a key is recognized from the file.
    works(
        "ssl_keyformat",
        Value(
            "Missing ssl_keyformat argument",
            "could not parse argument to ssl_keyformat",
            |text, _| unsigned(text).is_some(),
        ),
    ),
    ignored(
        "ssl_wbuf_size",
        Value(
            "Missing ssl_wbuf_size argument",
            "could not parse argument to ssl_wbuf_size",
            |text, to| {
                unsigned(text).map(|kibibytes| to.tuning.tls_buffer_kibibytes = kibibytes).is_some()
            },
        ),
    ),
    // Sessions are resumed in any case.
    works("ssl_session_cache", Nothing(|to| to.tuning.tls_session_cache = true)),
    ignored("ssl_kernel_tls", Nothing(|to| to.tuning.tls_kernel = true)),
];

fn verify_mode(text: &str, to: &mut Configuration) -> Result<(), String> {
    to.tls_clients = match text.parse::<i32>() {
        Ok(0) => ClientCertificates::Ignored,
        Ok(1) => ClientCertificates::Verified,
        // 3 is 2 without a second check in a renegotiation, which neither server offers.
        Ok(2 | 3) => ClientCertificates::Required,
        Ok(_) => return Err("Invalid ssl_verify_mode. Use help to see valid options.".to_owned()),
        Err(_) => return Err("could not parse argument to ssl_verify_mode".to_owned()),
    };
    Ok(())
}

/// TLS 1.2 is the oldest version that this server speaks, even if an option allows older ones.
fn tls_version(text: &str, to: &mut Configuration) -> Result<(), String> {
    to.tls_only_1_3 = match text.parse::<i32>() {
        Ok(version @ 0..=3) => version == 3,
        Ok(_) => return Err("Invalid ssl_min_version. Use help to see valid options.".to_owned()),
        Err(_) => return Err("could not parse argument to ssl_min_version".to_owned()),
    };
    Ok(())
}
