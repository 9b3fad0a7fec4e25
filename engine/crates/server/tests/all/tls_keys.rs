//! TLS: the kinds and forms of keys, and the choice of ciphers.

use std::path::Path;
use std::process::{Command, Stdio};

use cachemark_server::{IoMode, Server, Tls, TlsSettings};

use crate::tls::{answers, any_port, files, make_certificate, serve};

/// Let openssl convert the key of the folder.
fn convert(folder: &Path, arguments: &[&str]) {
    let converted =
        Command::new("openssl").args(arguments).current_dir(folder).stderr(Stdio::null()).status();
    assert!(
        converted.expect("openssl on PATH: apt-get install openssl").success(),
        "{arguments:?}"
    );
}

/// A certificate for localhost, by `openssl req` with this kind of key.
fn make_certificate_of(folder: &Path, kind: &[&str]) {
    let request = ["req", "-x509", "-nodes", "-subj", "/CN=localhost", "-days", "2"];
    let extensions = [
        "-addext",
        "subjectAltName=DNS:localhost",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ];
    let files = ["-keyout", "key.pem", "-out", "cert.pem"];
    convert(folder, &[&request[..], kind, &extensions, &files].concat());
}

#[test]
fn a_key_may_have_each_form_that_openssl_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let relabelled = |from: &str, to: &str| {
        let text = std::fs::read_to_string(folder.join("key.pem")).expect("a key");
        std::fs::write(folder.join("key.pem"), text.replace(from, to)).expect("a file");
    };
    let answers_in_tls = |form: &str| {
        let server = serve(IoMode::Events, &[any_port()], &Tls::read(files(folder)).expect(form));
        assert!(answers(&server.addresses[0], folder, None), "{form}");
    };
    make_certificate_of(folder, &["-newkey", "rsa:2048"]);
    answers_in_tls("PKCS#8");
    relabelled(" PRIVATE KEY", " RSA PRIVATE KEY");
    answers_in_tls("PKCS#8 under the label of PKCS#1");
    relabelled(" RSA PRIVATE KEY", " PRIVATE KEY");
    convert(folder, &["rsa", "-in", "key.pem", "-traditional", "-out", "key.pem"]);
    answers_in_tls("PKCS#1");
    convert(folder, &["rsa", "-in", "key.pem", "-outform", "DER", "-out", "key.pem"]);
    answers_in_tls("DER");
    make_certificate_of(folder, &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1"]);
    answers_in_tls("P-384");
    convert(folder, &["ec", "-in", "key.pem", "-out", "key.pem"]);
    answers_in_tls("SEC 1");
}

#[test]
fn an_unreadable_key_is_refused_with_the_kinds_that_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_certificate(folder, "cert", "key");
    let refused = || Tls::read(files(folder)).expect_err("no key to read");
    let with_passphrase = ["-pass", "pass:word", "-out", "key.pem"];
    convert(
        folder,
        &[&["genpkey", "-algorithm", "ed25519", "-aes256"][..], &with_passphrase].concat(),
    );
    assert!(refused().contains("key.pem: the server cannot use this key"), "{}", refused());
    assert!(refused().contains("without a passphrase"), "{}", refused());
    std::fs::write(folder.join("key.pem"), "no key").expect("a file");
    assert!(refused().contains("it needs an RSA key"), "{}", refused());
}

/// The messages of openssl about a connection to this server, made with these options.
fn seen_by_openssl(server: &Server, options: &[&str]) -> String {
    let asked = Command::new("openssl")
        .args(["s_client", "-brief", "-connect", &server.addresses[0]])
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("openssl on PATH");
    String::from_utf8_lossy(&asked.stderr).into_owned()
}

/// The client of these tests cannot verify such a certificate, and openssl can.
#[test]
fn a_key_of_p_521_signs() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let signs = || {
        let server =
            serve(IoMode::Events, &[any_port()], &Tls::read(files(folder)).expect("a key"));
        for version in ["-tls1_2", "-tls1_3"] {
            let seen = seen_by_openssl(&server, &[version, "-CAfile", &ca_file(folder)]);
            assert!(seen.contains("Verification: OK"), "{version}: {seen}");
            assert!(seen.contains("Hash used: SHA512"), "{version}: {seen}");
        }
    };
    make_certificate_of(folder, &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp521r1"]);
    signs();
    convert(folder, &["ec", "-in", "key.pem", "-out", "key.pem"]);
    signs();
    convert(folder, &["ecparam", "-name", "secp521r1", "-genkey", "-noout", "-out", "key.pem"]);
    let refused = Tls::read(files(folder)).expect_err("the key of another certificate");
    assert!(refused.contains("key.pem"), "{refused}");
}

fn ca_file(folder: &Path) -> String {
    folder.join("cert.pem").to_string_lossy().into_owned()
}

#[test]
fn the_ciphers_of_tls_1_2_are_the_named_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_certificate(folder, "cert", "key");
    let with =
        |names: &str| Tls::read(TlsSettings { ciphers: Some(names.to_owned()), ..files(folder) });
    let server = serve(
        IoMode::Events,
        &[any_port()],
        &with("ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305").expect("ciphers"),
    );
    let chosen = |options: &[&str]| seen_by_openssl(&server, options);
    assert!(chosen(&["-tls1_2"]).contains("Ciphersuite: ECDHE-ECDSA-CHACHA20-POLY1305"));
    let refused = chosen(&["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"]);
    assert!(!refused.contains("Ciphersuite"), "{refused}");
    assert!(chosen(&["-tls1_3"]).contains("Ciphersuite: TLS_"));
    let unknown = with("HIGH").expect_err("a word that is no cipher");
    assert!(unknown.contains("no HIGH") && unknown.contains("ECDHE-RSA-AES128-GCM-SHA256"));
}
