//! TLS: the server's certificate, certificates of clients, listeners with rules of their own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cachemark_server::{
    ClientCertificates, Endpoint, IoMode, Security, Server, State, Tls, TlsSettings, start,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use crate::targets;

const PATIENCE: Duration = Duration::from_secs(20);

/// TLS without io_uring, which has none.
const MODES: [IoMode; 3] = [IoMode::Blocking, IoMode::Events, IoMode::Busy];

pub fn any_port() -> Endpoint {
    Endpoint::Tcp("127.0.0.1:0".to_owned())
}

pub fn serve(io: IoMode, endpoints: &[Endpoint], tls: &Tls) -> Server {
    let state = State::new(targets::settings(io), targets::VERSION).with_tls(tls.clone());
    start(endpoints, &Arc::new(state)).expect("a server")
}

/// The files of the server's own certificate, which `make_certificate` writes.
pub fn files(folder: &Path) -> TlsSettings {
    let (certificates, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    TlsSettings { certificates, key, ..TlsSettings::default() }
}

/// A certificate for localhost and its key.
fn certificate(folder: &Path) -> Tls {
    make_certificate(folder, "cert", "key");
    Tls::read(files(folder)).expect("a certificate")
}

/// Let openssl make a certificate that signs itself.
pub fn make_certificate(folder: &Path, certificate: &str, key: &str) {
    let (certificate, key) = (format!("{certificate}.pem"), format!("{key}.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-days", "2", "-keyout", &key, "-out", &certificate])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl on PATH: apt-get install openssl").success());
}

/// The files of the server, of a client, and of a client that the server does not trust.
fn make_files(folder: &Path) {
    for (certificate, key) in [("cert", "key"), ("client", "client-key"), ("other", "other-key")] {
        make_certificate(folder, certificate, key);
    }
}

type Client = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

/// A client without a certificate.
fn connect(server: &Server, folder: &Path) -> Client {
    connect_as(&server.addresses[0], folder, None)
}

/// A client with this certificate and key, by the names of their files. It trusts the server's.
fn connect_as(address: &str, folder: &Path, own: Option<(&str, &str)>) -> Client {
    let read = |name: &str| {
        CertificateDer::from_pem_file(folder.join(format!("{name}.pem"))).expect("a certificate")
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(read("cert")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let config = match own {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(folder.join(format!("{key}.pem")));
            builder.with_client_auth_cert(vec![read(certificate)], key.expect("a key"))
        }
        None => Ok(builder.with_no_client_auth()),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    let config = Arc::new(config.expect("a certificate and its key"));
    let connection = rustls::ClientConnection::new(config, name).expect("a client");
    rustls::StreamOwned::new(connection, socket(address))
}

fn socket(address: &str) -> TcpStream {
    let socket = TcpStream::connect(address).expect("a server");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

#[test]
fn tls_carries_small_and_large_values_and_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    for io in MODES {
        let server = serve(io, &[any_port()], &tls);
        let mut stream = connect(&server, folder.path());
        let value = vec![b'v'; 900_000];
        let set = [&b"set a 0 0 900000\r\n"[..], &value, b"\r\n"].concat();
        stream.write_all(&set).expect("a server that reads");
        let mut stored = [0; 8];
        stream.read_exact(&mut stored).expect("a server that answers");
        assert_eq!(&stored, b"STORED\r\n");
        stream.write_all(&b"get a\r\n".repeat(9)).expect("a server that reads");
        let got = [&b"VALUE a 0 900000\r\n"[..], &value, b"\r\nEND\r\n"].concat().repeat(9);
        let mut reply = vec![0; got.len()];
        stream.read_exact(&mut reply).expect("a server that answers");
        assert!(reply == got);
        // Values whose ends are anywhere in a record, one behind the other.
        let lengths = [4000, 16_384, 16_362, 70_000, 5, 16_385, 40_000, 20_000, 130_000];
        let sets = lengths.map(|length| {
            let value = (0..length).map(|n| (n % 251) as u8).collect::<Vec<u8>>();
            [format!("set k{length} 0 0 {length}\r\n").as_bytes(), &value, b"\r\n"].concat()
        });
        ask(&mut stream, &sets.concat().repeat(3), &b"STORED\r\n".repeat(27));
        for (length, set) in lengths.iter().zip(&sets) {
            let value = &set[set.len() - length - 2..];
            let head = format!("VALUE k{length} 0 {length}\r\n");
            let got = [head.as_bytes(), value, b"END\r\n"].concat();
            ask(&mut stream, format!("get k{length}\r\n").as_bytes(), &got);
        }
        // A thousand requests in one TLS record, which the server reads in pieces.
        stream.write_all(&b"mg a s\r\n".repeat(1900)).expect("a server that reads");
        let mut reply = vec![0; b"HD s900000\r\n".len() * 1900];
        stream.read_exact(&mut reply).expect("a server that answers");
        assert!(reply == b"HD s900000\r\n".repeat(1900));
    }
}

#[test]
fn plain_text_to_a_tls_port_ends_that_connection_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    for io in MODES {
        let server = serve(io, &[any_port()], &tls);
        let mut plain = socket(&server.addresses[0]);
        plain.write_all(b"version\r\n").expect("a server that reads");
        let mut reply = Vec::new();
        // An alert or a reset: the connection ends without a reply.
        let _ = plain.read_to_end(&mut reply);
        assert!(!reply.starts_with(b"VERSION"));
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\n").expect("a server that reads");
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).expect("a server that answers");
        assert_eq!(&reply, b"MN\r\n");
    }
}

fn ask(client: &mut Client, request: &[u8], reply: &[u8]) {
    client.write_all(request).expect("a server that reads");
    let mut read = vec![0; reply.len()];
    client.read_exact(&mut read).expect("a server that answers");
    assert_eq!(read, reply);
}

/// The client trusts only the certificate that is in the folder when it connects.
#[test]
fn new_connections_get_the_certificate_that_was_read_last() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    let server = serve(IoMode::Events, &[any_port()], &tls);
    let mut early = connect(&server, folder.path());
    ask(&mut early, b"mn\r\n", b"MN\r\n");
    make_certificate(folder.path(), "cert", "key");
    let mut stranger = connect(&server, folder.path());
    assert!(stranger.write_all(b"mn\r\n").is_err(), "the server still has the old one");
    ask(&mut early, b"refresh_certs\r\n", b"OK\r\n");
    ask(&mut connect(&server, folder.path()), b"mn\r\n", b"MN\r\n");
    std::fs::write(folder.path().join("key.pem"), "no key").expect("a file");
    let refused = b"Error loading the certificate chain or its key\r\n";
    ask(&mut early, b"refresh_certs\r\n", refused);
    ask(&mut connect(&server, folder.path()), b"mn\r\n", b"MN\r\n");
}

/// Whether a client that asks for a no-op gets its reply.
pub fn answers(address: &str, folder: &Path, own: Option<(&str, &str)>) -> bool {
    let mut client = connect_as(address, folder, own);
    let mut reply = [0; 4];
    let asked: io::Result<()> =
        client.write_all(b"mn\r\n").and_then(|()| client.read_exact(&mut reply));
    asked.is_ok() && &reply == b"MN\r\n"
}

/// Clients without a certificate, with one that the authority has signed, and with another's.
const CLIENTS: [Option<(&str, &str)>; 3] =
    [None, Some(("client", "client-key")), Some(("other", "other-key"))];

#[test]
fn certificates_of_clients_are_verified_as_the_server_was_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_files(folder);
    let rules = [
        (ClientCertificates::Ignored, [true, true, true]),
        (ClientCertificates::Verified, [true, true, false]),
        (ClientCertificates::Required, [false, true, false]),
    ];
    for (io, (clients, expected)) in MODES.into_iter().flat_map(|io| rules.map(|rule| (io, rule))) {
        let authorities = Some(folder.join("client.pem"));
        let tls = Tls::read(TlsSettings { authorities, clients, ..files(folder) });
        let server = serve(io, &[any_port()], &tls.expect("certificates"));
        let found = CLIENTS.map(|own| answers(&server.addresses[0], folder, own));
        assert_eq!(found, expected, "{io:?}, {clients:?}");
    }
}

#[test]
fn listeners_have_rules_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_files(folder);
    let (authorities, clients) = (Some(folder.join("client.pem")), ClientCertificates::Verified);
    let tls = Tls::read(TlsSettings { authorities, clients, ..files(folder) }).expect("files");
    let with = |of| Endpoint::TcpWith("127.0.0.1:0".to_owned(), of);
    let endpoints = [
        with(Security::Plain),
        any_port(),
        with(Security::Tls(ClientCertificates::Ignored)),
        with(Security::Tls(ClientCertificates::Required)),
    ];
    let server = serve(IoMode::Events, &endpoints, &tls);
    let mut plain = socket(&server.addresses[0]);
    plain.write_all(b"mn\r\n").expect("a server that reads");
    let mut reply = [0; 4];
    plain.read_exact(&mut reply).expect("a server that answers");
    assert_eq!(&reply, b"MN\r\n");
    let found = [1, 2, 3].map(|at| CLIENTS.map(|own| answers(&server.addresses[at], folder, own)));
    assert_eq!(found, [[true, true, false], [true; 3], [false, true, false]]);
}

#[test]
fn without_authorities_no_certificate_is_right() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_files(folder);
    for (clients, expected) in [
        (ClientCertificates::Verified, [true, false, false]),
        (ClientCertificates::Required, [false, false, false]),
    ] {
        let tls = Tls::read(TlsSettings { clients, ..files(folder) }).expect("files");
        let server = serve(IoMode::Events, &[any_port()], &tls);
        let found = CLIENTS.map(|own| answers(&server.addresses[0], folder, own));
        assert_eq!(found, expected, "{clients:?}");
    }
}

#[test]
fn connections_that_fail_in_tls_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    make_files(folder);
    let server = serve(IoMode::Events, &[any_port()], &certificate(folder));
    let mut plain = socket(&server.addresses[0]);
    plain.write_all(b"version\r\n").expect("a server that reads");
    // The end of the connection: the server has counted it.
    let _ = plain.read_to_end(&mut Vec::new());
    let mut client = connect(&server, folder);
    client.write_all(b"mn\r\n").and_then(|()| client.read_exact(&mut [0; 4])).expect("a reply");
    client
        .sock
        .write_all(&[23, 3, 3, 0, 20, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9])
        .expect("a server that reads");
    let _ = client.sock.read_to_end(&mut Vec::new());
    let mut client = connect(&server, folder);
    client.write_all(b"stats\r\nquit\r\n").expect("a server that reads");
    let mut stats = String::new();
    client.read_to_string(&mut stats).expect("a server that answers");
    assert!(
        stats.contains("STAT ssl_handshake_errors 1\r\nSTAT ssl_proto_errors 1\r\n"),
        "{stats}"
    );
}

/// Without this, OpenSSL reports an error at the end of the connection.
#[test]
fn tls_says_that_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    for io in MODES {
        let server = serve(io, &[any_port()], &tls);
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\nquit\r\n").expect("a server that reads");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("an end that was announced");
        assert_eq!(reply, b"MN\r\n", "{io:?}");
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\n").expect("a server that reads");
        stream.conn.send_close_notify();
        stream.flush().expect("a server that reads");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("an end that was announced");
        assert_eq!(reply, b"MN\r\n", "{io:?}");
    }
}
