//! A distance over real sockets: nothing comes early, nothing is lost, nothing changes its order.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cachemark_fault_proxy::distance::{Distance, SharedAccount};

/// Longer than any step takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ROUND_TRIP: Duration = Duration::from_millis(4);

/// A proxy on a thread of its own.
struct Proxied {
    address: SocketAddr,
    account: SharedAccount,
    stop: Arc<AtomicBool>,
}

impl Proxied {
    fn start(server: SocketAddr, round_trip: Duration) -> Proxied {
        let mut distance =
            Distance::listen(Ipv4Addr::LOCALHOST.into(), &[server], round_trip).expect("a port");
        let (address, account) = (distance.addresses()[0], distance.account());
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        thread::spawn(move || distance.run(&ends).expect("it runs"));
        Proxied { address, account, stop }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A server that sends back what it gets, then its end, on each of `connections`.
fn echo(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let mut stream = stream.expect("a client");
            thread::spawn(move || {
                let mut buffer = vec![0; 50_000];
                while let Ok(bytes) = stream.read(&mut buffer)
                    && bytes > 0
                {
                    stream.write_all(&buffer[..bytes]).expect("it reads");
                }
            });
        }
    });
    address
}

#[test]
fn every_answer_takes_the_round_trip() {
    let proxied = Proxied::start(echo(1), ROUND_TRIP);
    let mut client = proxied.connect();
    for number in 0..20 {
        let began = Instant::now();
        client.write_all(&[number]).expect("it reads");
        let mut answer = [0];
        client.read_exact(&mut answer).expect("it answers");
        assert_eq!(answer, [number]);
        // The first bytes of a connection wait for its opening, too.
        let least = if number == 0 { ROUND_TRIP + ROUND_TRIP / 2 } else { ROUND_TRIP };
        assert!(began.elapsed() >= least, "{number}: {:?}", began.elapsed());
    }
    let account = proxied.account.lock();
    assert_eq!((account.connections, account.refused), (1, 0));
    for held in account.held() {
        assert_eq!((held.pieces, held.bytes, held.full), (20, 20, 0));
        assert!(held.least_ns >= ROUND_TRIP.as_nanos() as u64 / 2, "{held:?}");
        assert!(held.least_ns <= held.median_ns && held.median_ns <= held.p99_ns);
    }
}

#[test]
fn more_bytes_than_it_holds_pass_in_order() {
    let proxied = Proxied::start(echo(1), ROUND_TRIP);
    let mut client = proxied.connect();
    let mut reader = client.try_clone().expect("a socket");
    // More than may wait in both directions, while neither side reads yet.
    let sent: Vec<u8> = (0..10_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let expected = sent.clone();
    let writer = thread::spawn(move || {
        client.write_all(&sent).expect("it reads");
        client.shutdown(Shutdown::Write).expect("a socket");
    });
    while proxied.account.lock().held()[1].full == 0 {
        thread::yield_now();
    }
    let mut got = Vec::new();
    reader.read_to_end(&mut got).expect("the end");
    writer.join().expect("no panic");
    assert!(got == expected, "{} bytes of {}", got.len(), expected.len());
    let held = proxied.account.lock().held();
    assert_eq!(held.map(|held| held.bytes), [expected.len() as u64; 2]);
}

#[test]
fn requests_before_a_reset_still_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxied = Proxied::start(listener.local_addr().expect("bound"), ROUND_TRIP);
    let client = proxied.connect();
    (&client).write_all(b"set a 0 0 1 noreply\r\nx\r\n").expect("it reads");
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("a socket");
    let (mut server, _) = listener.accept().expect("a client");
    server.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut first = [0; 4];
    server.read_exact(&mut first).expect("the request");
    drop(client);
    let mut rest = [0; 20];
    server.read_exact(&mut rest).expect("the rest of it");
    assert_eq!((&first, &rest), (b"set ", b"a 0 0 1 noreply\r\nx\r\n"));
    let error = server.read(&mut rest).expect_err("a reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_server_that_is_away_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let proxied = Proxied::start(address, ROUND_TRIP);
    let mut client = proxied.connect();
    let read = client.read(&mut [0]);
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert_eq!(proxied.account.lock().connections, 1);
}
