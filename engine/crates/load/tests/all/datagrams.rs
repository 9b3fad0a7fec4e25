//! Gets over UDP: the datagrams of a reply arrive in any order, twice, or never.

use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Failure, Hashing, IoBackend, PhaseLimits,
    PrepareError, Refill, RunControl, WireName,
};
use cachemark_tape::{
    IntegerDistribution, KeyShape, Schedule, Tape, Workload, generate, parse_mix,
};

const VALUE_BYTES: u32 = 3000;
const PART_BYTES: usize = 1000;
const OPS: u64 = 12;

fn tape(mix: &str) -> Arc<Tape> {
    let workload = Workload {
        keys: 4,
        shape: KeyShape::Pattern("key-{index}".to_owned()),
        size: IntegerDistribution::fixed(VALUE_BYTES),
        mix: parse_mix(mix).expect("a mix"),
        ..Workload::default()
    };
    let bytes = generate(&workload, &Schedule::closed(OPS), 1).expect("a tape");
    Arc::new(Tape::from_bytes(bytes).expect("our own tape"))
}

/// A server that answers `version` and gets. The datagrams of a reply are sent in reverse order, each
/// twice. It does not answer the n-th get if `lost` says so. It ends with the process.
fn server(tape: &Arc<Tape>, lost: fn(u32) -> bool) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("bound");
    let tape = Arc::clone(tape);
    thread::spawn(move || {
        let (mut request, mut gets) = ([0; 2048], 0);
        while let Ok((bytes, from)) = socket.recv_from(&mut request) {
            let (id, words) = ([request[0], request[1]], &request[8..bytes]);
            let Some(key) = words.strip_prefix(b"get ").and_then(|key| key.strip_suffix(b"\r\n"))
            else {
                send(&socket, from, id, b"VERSION 1\r\n");
                continue;
            };
            gets += 1;
            if !lost(gets) {
                let keys = 0..tape.key_count();
                let k = keys.into_iter().find(|k| tape.key(*k) == key).expect("a key");
                let head = format!("VALUE key-{k} 0 {VALUE_BYTES}\r\n");
                let value = tape.value(k, VALUE_BYTES);
                send(&socket, from, id, &[head.as_bytes(), value, b"\r\nEND\r\n"].concat());
            }
        }
    });
    address
}

fn send(socket: &UdpSocket, to: SocketAddr, id: [u8; 2], reply: &[u8]) {
    let parts: Vec<&[u8]> = reply.chunks(PART_BYTES).collect();
    for (place, part) in parts.iter().enumerate().rev() {
        let header = [id[0], id[1], 0, place as u8, 0, parts.len() as u8, 0, 0];
        for _ in 0..2 {
            // An error means that the client has closed its socket.
            let _ = socket.send_to(&[&header[..], part].concat(), to);
        }
    }
}

fn client(
    address: SocketAddr,
    tape: &Arc<Tape>,
    (connection_options, depth): (ConnectionOptions, usize),
    timeout: Duration,
) -> Result<Client, PrepareError> {
    let options = ClientOptions {
        addresses: vec![Address::Udp(address.into())],
        hashing: Hashing::default(),
        connection_options,
        threads: 1,
        connections: 2,
        depth,
        refill: Refill::Each,
        segment: (0, 1),
        timeout,
    };
    Client::prepare(options, Arc::clone(tape))
}

fn counts(address: SocketAddr, tape: &Arc<Tape>, timeout: Duration) -> (u64, u64, u64, u64) {
    let mut client =
        client(address, tape, (ConnectionOptions::default(), 1), timeout).expect("a client");
    let limits =
        PhaseLimits::Play { start_in_ns: 0, ops: Some(OPS), duration_ns: Some(120_000_000_000) };
    let result = client.run(limits, &RunControl::default()).expect("a window");
    let (_, gets) = result.metrics.kinds().next().expect("gets");
    assert_eq!(gets.attempts, gets.ok + gets.errors.iter().sum::<u64>());
    assert_eq!((gets.hits, gets.wrong_values), (gets.ok, 0));
    let timeouts = gets.errors[Failure::Timeout as usize];
    (gets.attempts, gets.ok, timeouts, result.metrics.reconnects)
}

#[test]
fn replies_are_assembled_from_datagrams() {
    let tape = tape("get");
    let recorded = counts(server(&tape, |_| false), &tape, Duration::from_secs(60));
    assert_eq!(recorded, (OPS, OPS, 0, 0));
}

#[test]
fn a_lost_datagram_is_a_timeout() {
    let tape = tape("get");
    let address = server(&tape, |number| number == 3 || number == 8);
    let (attempts, ok, timeouts, reconnects) = counts(address, &tape, Duration::from_secs(1));
    // After a pause of this machine there are more timeouts.
    assert!(timeouts >= 2 && ok <= OPS - 2 && attempts <= OPS, "{timeouts} of {attempts}, {ok}");
    assert!(reconnects >= 1, "a socket with a time-out is left");
}

#[test]
fn requests_that_do_not_fit_into_a_datagram_are_rejected() {
    let (gets, sets, runs) = (tape("get"), tape("set"), tape("mget"));
    let address = server(&gets, |_| false);
    let plain = (ConnectionOptions::default(), 1);
    let long = Duration::from_secs(60);
    let refused = |tape, how| match client(address, tape, how, long) {
        Err(PrepareError::Unsupported(reason)) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was taken"),
    };
    assert!(refused(&sets, plain.clone()).contains("1400"), "a value too long");
    assert!(refused(&runs, plain.clone()).contains("one key"));
    assert!(refused(&gets, (ConnectionOptions::default(), 2)).contains("depth"));
    let wire = ConnectionOptions { wire: WireName::Binary, ..ConnectionOptions::default() };
    assert!(refused(&gets, (wire, 1)).contains("text"));
    let reconnect_after = NonZeroU64::new(5);
    let renewed = ConnectionOptions { reconnect_after, ..ConnectionOptions::default() };
    assert!(refused(&gets, (renewed, 1)).contains("reconnect_after"));
    assert!(
        refused(
            &gets,
            (ConnectionOptions { io: IoBackend::Uring, ..ConnectionOptions::default() }, 1)
        )
        .contains("epoll")
    );
    let mut client = client(address, &gets, plain, long).expect("a client");
    let error =
        client.run(PhaseLimits::Prefill, &RunControl::default()).err().expect("too long to store");
    assert!(error.to_string().contains("TCP"), "{error}");
}
