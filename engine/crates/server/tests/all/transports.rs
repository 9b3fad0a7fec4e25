//! The same commands over Unix sockets and UDP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cachemark_server::{Endpoint, IoMode, Server, Settings, State, TrafficLog, start};

use crate::targets;

const PATIENCE: Duration = Duration::from_secs(20);

fn serve(io: IoMode, endpoint: Endpoint) -> Server {
    let state = State::new(targets::settings(io), targets::VERSION);
    start(&[endpoint], &Arc::new(state)).expect("a server")
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    for io in IoMode::available() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let mut server = serve(io, Endpoint::Unix(path.clone()));
        let mut stream = UnixStream::connect(&path).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\n").expect("a server that reads");
        stream.shutdown(Shutdown::Write).expect("a socket");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a server that answers");
        assert_eq!(reply, "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "whatever the umask is");
        server.stop();
        assert!(!path.exists());
    }
}

#[test]
fn datagrams_are_answered_in_frames() {
    let server = serve(IoMode::Events, Endpoint::Udp("127.0.0.1:0".to_owned()));
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
    // Lists of items, prefixes and clients are refused: the reply to a forged address would be many times the request.
    let refusals: [(&[u8], &[u8]); 7] = [
        (b"lru_crawler metadump all\r\n", b"ERROR metadump not allowed\r\n"),
        (b"lru_crawler metadump hash\r\n", b"ERROR metadump not allowed\r\n"),
        (b"lru_crawler mgdump hash\r\n", b"ERROR key dump not allowed\r\n"),
        (b"stats cachedump 1 0\r\n", b"CLIENT_ERROR stats cachedump not allowed\r\n"),
        (b"stats detail dump\r\n", b"CLIENT_ERROR stats detail not allowed\r\n"),
        (b"stats conns\r\n", b"CLIENT_ERROR stats conns not allowed\r\n"),
        (b"stats con\r\n", b"CLIENT_ERROR stats conns not allowed\r\n"),
    ];
    for (request, refusal) in refusals {
        assert_eq!(ask(2, request).concat(), refusal);
    }
}

#[test]
fn a_unix_sockets_file_is_reused_only_without_a_listener() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("s");
    let state = || Arc::new(State::new(targets::settings(IoMode::Events), targets::VERSION));
    let refused = |endpoints: &[Endpoint]| start(endpoints, &state()).err().expect("a refusal").0;
    let here = [Endpoint::Unix(path.clone())];
    // A socket file as a killed server leaves it.
    drop(UnixListener::bind(&path).expect("a socket"));
    let server = start(&here, &state()).expect("a server");
    let error = refused(&here);
    assert!(
        error.contains("in use") && error.contains("stop the program that listens there"),
        "{error}"
    );
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

/// As memcached does with `-l 0.0.0.0,::`.
#[test]
fn both_families_of_addresses_can_have_the_same_port() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("this machine has no IPv6");
        return;
    }
    let settings = Settings { families_apart: true, ..targets::settings(IoMode::Events) };
    let serve = |address: String| {
        start(&[Endpoint::Tcp(address)], &Arc::new(State::new(settings, targets::VERSION)))
    };
    let port = |server: &Server| {
        let address = server.addresses[0].clone();
        address.rsplit(':').next().expect("a port").to_owned()
    };
    let first = serve("0.0.0.0:0".to_owned()).expect("a server");
    let address = format!("[::]:{}", port(&first));
    let second = serve(address.clone()).expect("a server");
    assert_eq!(second.addresses, [address]);
    let stream = TcpStream::connect(format!("[::1]:{}", port(&first))).expect("a server");
    assert!(stream.peer_addr().expect("an address").is_ipv6());
}

/// A `set` of the binary protocol, without extras but flags and exptime.
fn binary_set(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut request = vec![0x80, 0x01, 0, key.len() as u8, 8, 0, 0, 0];
    request.extend_from_slice(&((8 + key.len() + value.len()) as u32).to_be_bytes());
    request.extend_from_slice(&[0; 12 + 8]);
    [&request, key, value].concat()
}

/// Values long enough to arrive in the memory of their items, and others, in pieces that end anywhere.
#[test]
fn long_values_arrive_and_leave_whole() {
    for io in IoMode::available() {
        let (_server, target) = targets::embedded(io);
        for (length, piece) in [
            (15_000, 999),
            (16_383, 16_384),
            (16_384, 5000),
            (40_000, 39_990),
            (100_000, 1 << 20),
            (131_000, 777),
            (300_000, 65_537),
            (1_000_000, 1 << 20),
        ] {
            let value: Vec<u8> = (0..length).map(|n| (n * 7 % 251) as u8).collect();
            let block = |head: String| [head.as_bytes(), &value, b"\r\n"].concat();
            let requests = [
                block(format!("set t 7 0 {length}\r\n")),
                block(format!("add t 0 0 {length}\r\n")),
                block(format!("replace t 5 0 {length} noreply\r\n")),
                block(format!("ms m {length} F9 T90 Oo s\r\n")),
                b"get t none m\r\nmg m v f\r\n".to_vec(),
            ];
            let expected = [
                format!("STORED\r\nNOT_STORED\r\nHD Oo s{length}\r\n").into_bytes(),
                block(format!("VALUE t 5 {length}\r\n")),
                block(format!("VALUE m 9 {length}\r\n")),
                b"END\r\n".to_vec(),
                block(format!("VA {length} f9\r\n")),
            ];
            let reply = target.exchange(&requests.concat(), piece, false);
            assert!(reply == expected.concat(), "{io:?}: {length} in pieces of {piece}");
            let stored = target.exchange(&binary_set(b"b", &value), piece, false);
            assert_eq!(stored[..8], [0x81, 0x01, 0, 0, 0, 0, 0, 0], "{io:?}: {length}");
            let reply = target.exchange(b"get b\r\n", usize::MAX, false);
            let expected = [block(format!("VALUE b 0 {length}\r\n")), b"END\r\n".to_vec()];
            assert!(reply == expected.concat(), "{io:?}: {length} in binary");
        }
        let wrong = [&b"set w 0 0 50000\r\n"[..], &[b'x'; 50_000], b"xxget w\r\n"].concat();
        let reply = target.exchange(&wrong, usize::MAX, false);
        assert_eq!(reply, b"CLIENT_ERROR bad data chunk\r\nEND\r\n", "{io:?}");
        // Clients that leave in the middle of a value take no memory with them.
        for n in 0..500 {
            let part = [format!("set gone{n} 0 0 900000\r\n").as_bytes(), &[b'x'; 20_000]].concat();
            target.exchange(&part, usize::MAX, false);
        }
        assert_eq!(
            target.exchange(b"get gone7\r\nget m\r\n", 9, false)[..16],
            *b"END\r\nVALUE m 9 1",
            "{io:?}"
        );
    }
}

/// Replies that are longer than what a session answers at once, again and again.
#[test]
fn a_pipeline_of_long_values_is_answered_to_its_end() {
    let value = vec![b'v'; 300_000];
    let set = [&b"set a 0 0 300000\r\n"[..], &value, b"\r\n"].concat();
    let got = [&b"VALUE a 0 300000\r\n"[..], &value, b"\r\nEND\r\n"].concat();
    for io in IoMode::available() {
        let (_server, target) = targets::embedded(io);
        assert_eq!(target.exchange(&set, usize::MAX, false), b"STORED\r\n");
        let reply = target.exchange(&b"get a\r\n".repeat(40), usize::MAX, false);
        assert!(reply == got.repeat(40), "{io:?}: {} bytes", reply.len());
    }
}

/// A request in two pieces is one turn of two reads, in two segments.
#[test]
fn the_traffic_log_has_the_pieces_of_requests() {
    let log = Arc::new(TrafficLog::default());
    let state = State::new(targets::settings(IoMode::Blocking), targets::VERSION);
    let state = Arc::new(state.with_traffic(Arc::clone(&log)));
    let server = start(&[Endpoint::Tcp("127.0.0.1:0".to_owned())], &state).expect("a server");
    let mut stream = TcpStream::connect(&server.addresses[0]).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_nodelay(true).expect("a socket");
    let mut reply = [0; 5];
    stream.write_all(b"get a\r\n").expect("a server that reads");
    stream.read_exact(&mut reply).expect("a server that answers");
    stream.write_all(b"ge").expect("a server that reads");
    let began = Instant::now();
    while state.bytes_read.load(Ordering::Relaxed) < 9 {
        assert!(began.elapsed() < PATIENCE, "the first piece did not arrive");
        std::thread::yield_now();
    }
    stream.write_all(b"t a\r\n").expect("a server that reads");
    stream.read_exact(&mut reply).expect("a server that answers");
    drop(stream);
    let connections = log.take(PATIENCE);
    let [seen] = connections[..] else { panic!("one connection, not {}", connections.len()) };
    assert_eq!((seen.turns, seen.reads, seen.bytes_in, seen.bytes_out), (2, 3, 14, 10));
    assert!(seen.gaps_ns > 0 && seen.longest_gap_ns == seen.gaps_ns);
    let segments = seen.segments.expect("a TCP connection");
    assert_eq!((segments.data_in, segments.data_out, segments.retransmitted), (3, 2, 0));
    assert!(log.take(Duration::ZERO).is_empty(), "each connection is told once");
}
