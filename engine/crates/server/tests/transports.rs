//! Unix sockets, datagrams and TLS: the same commands on other ways in.

mod targets;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cachemark_server::{Endpoint, IoMode, Server, State, Tls, start};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

const PATIENCE: Duration = Duration::from_secs(20);

fn serve(io: IoMode, endpoint: Endpoint, tls: Option<&Tls>) -> Server {
    let state = State::new(targets::settings(io), targets::VERSION);
    let state = match tls {
        Some(tls) => state.with_tls(tls.clone()),
        None => state,
    };
    start(&[endpoint], &Arc::new(state)).expect("a server")
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    for io in IoMode::available() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let mut server = serve(io, Endpoint::Unix(path.clone()), None);
        let mut stream = UnixStream::connect(&path).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\n").expect("a server that reads");
        stream.shutdown(Shutdown::Write).expect("a socket");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a server that answers");
        assert_eq!(reply, "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
        server.stop();
        assert!(!path.exists());
    }
}

#[test]
fn datagrams_are_answered_in_frames() {
    let server = serve(IoMode::Events, Endpoint::Udp("127.0.0.1:0".to_owned()), None);
    let address = server.addresses[0].strip_prefix("udp:").expect("a UDP address").to_owned();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket.connect(address).expect("an address");
    let ask = |id: u16, request: &[u8]| {
        let frame = [&id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0], request].concat();
        socket.send(&frame).expect("a server");
        let (mut parts, mut room) = (Vec::<Option<Vec<u8>>>::new(), [0; 2000]);
        while parts.is_empty() || parts.iter().any(Option::is_none) {
            let bytes = socket.recv(&mut room).expect("a server that answers");
            assert!(bytes <= 1400);
            let number = |at: usize| u16::from_be_bytes([room[at], room[at + 1]]);
            assert_eq!((number(0), number(6)), (id, 0));
            parts.resize(usize::from(number(4)), None);
            parts[usize::from(number(2))] = Some(room[8..bytes].to_vec());
        }
        parts.into_iter().flatten().collect::<Vec<_>>()
    };
    let value = vec![b'u'; 5000];
    let set = [&b"set a 0 0 5000\r\n"[..], &value, b"\r\n"].concat();
    assert_eq!(ask(1, &set).concat(), b"STORED\r\n");
    let got = [&b"VALUE a 0 5000\r\n"[..], &value, b"\r\nEND\r\n"].concat();
    let reply = ask(0xabcd, b"get a\r\n");
    assert_eq!(reply.len(), 4);
    assert_eq!(reply.concat(), got);
}

/// A certificate for localhost and its key, made by openssl.
fn certificate(folder: &Path) -> Tls {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-days", "2", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl on PATH: apt-get install openssl").success());
    Tls::read(&folder.join("cert.pem"), &folder.join("key.pem")).expect("a certificate")
}

type Client = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

fn connect(server: &Server, folder: &Path) -> Client {
    let mut roots = rustls::RootCertStore::empty();
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem"));
    roots.add(certificate.expect("a certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(&server.addresses[0]).expect("a server");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    rustls::StreamOwned::new(connection, socket)
}

#[test]
fn tls_carries_small_and_large_values_and_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    for io in [IoMode::Blocking, IoMode::Events, IoMode::Busy] {
        let server = serve(io, Endpoint::Tcp("127.0.0.1:0".to_owned()), Some(&tls));
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
        // A thousand requests in one record, of which the server reads a piece at a time.
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
    for io in [IoMode::Blocking, IoMode::Events, IoMode::Busy] {
        let server = serve(io, Endpoint::Tcp("127.0.0.1:0".to_owned()), Some(&tls));
        let mut plain = TcpStream::connect(&server.addresses[0]).expect("a server");
        plain.set_read_timeout(Some(PATIENCE)).expect("a socket");
        plain.write_all(b"version\r\n").expect("a server that reads");
        let mut reply = Vec::new();
        // An alert or a reset: either way the end, and nothing of the protocol.
        let _ = plain.read_to_end(&mut reply);
        assert!(!reply.starts_with(b"VERSION"));
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\n").expect("a server that reads");
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).expect("a server that answers");
        assert_eq!(&reply, b"MN\r\n");
    }
}

/// OpenSSL takes an end without this for an error.
#[test]
fn tls_says_that_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let tls = certificate(folder.path());
    for io in [IoMode::Blocking, IoMode::Events, IoMode::Busy] {
        let server = serve(io, Endpoint::Tcp("127.0.0.1:0".to_owned()), Some(&tls));
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\nquit\r\n").expect("a server that reads");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("an end that was told of");
        assert_eq!(reply, b"MN\r\n", "{io:?}");
        let mut stream = connect(&server, folder.path());
        stream.write_all(b"mn\r\n").expect("a server that reads");
        stream.conn.send_close_notify();
        stream.flush().expect("a server that reads");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("an end that was told of");
        assert_eq!(reply, b"MN\r\n", "{io:?}");
    }
}

#[test]
fn the_file_of_a_unix_socket_is_taken_over_only_where_nobody_listens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let state = || Arc::new(State::new(targets::settings(IoMode::Events), targets::VERSION));
    let refused = |endpoints: &[Endpoint]| start(endpoints, &state()).err().expect("a refusal").0;
    let here = [Endpoint::Unix(path.clone())];
    // As a server that was killed leaves it.
    drop(UnixListener::bind(&path).expect("a socket"));
    let server = start(&here, &state()).expect("a server");
    let error = refused(&here);
    assert!(error.contains("in use") && error.contains("stop what listens there"), "{error}");
    drop(server);
    assert!(!path.exists());
    let error = refused(&[here[0].clone(), Endpoint::Udp("nowhere".to_owned())]);
    assert!(error.contains("udp:nowhere") && error.contains("write host:port"), "{error}");
    assert!(!path.exists());
    std::fs::write(&path, "a text").expect("a file");
    let error = refused(&here);
    assert!(error.contains("no socket; choose a path where nothing is"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "a text");
}
