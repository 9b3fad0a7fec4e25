//! Faulty servers, in each protocol: errors are counted by their cause, connections are opened again,
//! and the run ends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Failure, Hashing, IoBackend, KindMetrics,
    PhaseLimits, Refill, RunControl, RunResult, WireName,
};
use cachemark_tape::{
    IntegerRange, KeyDistribution, KeyShape, Schedule, Tape, Workload, generate, parse_mix,
};

use crate::backends::backends_and_wires;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Closes the connection when a request arrives.
    Closes,
    /// Answers with bytes that are no reply.
    Garbage,
    /// Answers with half a reply and closes.
    Truncates,
    /// Answers with the reply to another key or another command.
    Mixes,
    /// Answers with the right value and other flags than were stored.
    Flags,
    /// Sends each reply twice.
    Repeats,
    /// Reads requests and never answers.
    Freezes,
    /// Answers with an error.
    Refuses,
    /// Sends its reply byte by byte.
    Dribbles,
    /// Announces a value of 4 GB, and sends bytes until the client hangs up.
    Floods,
}

const VALUE_BYTES: usize = 20;

/// The bytes that a client may read of a reply without end, with the buffers of both sockets.
const FLOOD_BYTES_MAX: u64 = 64 << 20;

fn tape() -> Arc<Tape> {
    let workload = Workload {
        keys: 2,
        distribution: KeyDistribution::Constant,
        shape: KeyShape::Pattern("key-{index}".to_owned()),
        size: IntegerRange { low: VALUE_BYTES as u32, high: VALUE_BYTES as u32 }.into(),
        mix: parse_mix("get").expect("a mix"),
        prefill: 0.0,
        ..Workload::default()
    };
    let bytes = generate(&workload, &Schedule::closed(10), 1).expect("a tape");
    Arc::new(Tape::from_bytes(bytes).expect("our own tape"))
}

/// A hit for a key, in the protocol `wire`. A flag is one digit.
fn hit(tape: &Tape, wire: WireName, k: u32, opaque: u32, flags: u8) -> Vec<u8> {
    let (key, value) = (tape.key(k), tape.value(k, VALUE_BYTES as u32));
    let mut reply = match wire {
        WireName::Text => [b"VALUE ", key, b" ", &[b'0' + flags], b" 20\r\n"].concat(),
        WireName::Meta => [b"VA 20 k", key, b" f", &[b'0' + flags], b"\r\n"].concat(),
        WireName::Binary => {
            let mut head = vec![0x81, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 4 + VALUE_BYTES as u8];
            head.extend_from_slice(&opaque.to_be_bytes());
            head.extend_from_slice(&[0; 8]);
            head.extend_from_slice(&u32::from(flags).to_be_bytes());
            head
        }
    };
    reply.extend_from_slice(value);
    match wire {
        WireName::Text => reply.extend_from_slice(b"\r\nEND\r\n"),
        WireName::Meta => reply.extend_from_slice(b"\r\n"),
        WireName::Binary => {}
    }
    reply
}

/// The reply to one request; `None` for no reply.
fn answer(fault: Fault, tape: &Tape, wire: WireName, request: &[u8]) -> Option<Vec<u8>> {
    let opaque = request
        .get(12..16)
        .map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")));
    let k = tape.op(0).key;
    let right = || hit(tape, wire, k, opaque, 0);
    Some(match fault {
        Fault::Closes => vec![],
        Fault::Garbage => b"\0\0\0 what?\r\n".to_vec(),
        Fault::Truncates => right()[..VALUE_BYTES].to_vec(),
        Fault::Mixes => hit(tape, wire, k ^ 1, opaque.wrapping_add(1), 0),
        Fault::Flags => hit(tape, wire, k, opaque, 7),
        Fault::Repeats => right().repeat(2),
        Fault::Freezes => return None,
        Fault::Refuses if wire == WireName::Binary => {
            let mut head = vec![0x81, 0, 0, 0, 0, 0, 0, 0x82, 0, 0, 0, 0];
            head.extend_from_slice(&opaque.to_be_bytes());
            head.extend_from_slice(&[0; 8]);
            head
        }
        Fault::Refuses => b"SERVER_ERROR out of memory\r\n".to_vec(),
        Fault::Dribbles => right(),
        Fault::Floods => match wire {
            WireName::Text => b"VALUE key-0 0 4000000000\r\n".to_vec(),
            WireName::Meta => b"VA 4000000000 kkey-0 f0\r\n".to_vec(),
            WireName::Binary => {
                let mut head = vec![0x81, 0, 0, 0, 4, 0, 0, 0, 0xee, 0, 0, 0];
                head.extend_from_slice(&opaque.to_be_bytes());
                head.resize(24, 0);
                head
            }
        },
    })
}

fn serve(mut stream: TcpStream, fault: Fault, tape: &Tape, wire: WireName, flooded: &AtomicU64) {
    let mut request = [0; 512];
    // At depth 1 a read returns one request. The loop ends when either side closes.
    while let Ok(bytes @ 1..) = stream.read(&mut request) {
        let Some(reply) = answer(fault, tape, wire, &request[..bytes]) else { continue };
        let slices = reply.chunks(if fault == Fault::Dribbles { 1 } else { 1 << 16 });
        let sent = slices.map(|piece| stream.write_all(piece)).all(|written| written.is_ok());
        if fault == Fault::Floods {
            flooded.fetch_max(flood(&mut stream), Ordering::Relaxed);
        }
        if !sent || matches!(fault, Fault::Closes | Fault::Truncates | Fault::Floods) {
            return;
        }
    }
}

/// Send bytes until the client hangs up. Returns how many bytes that were.
fn flood(stream: &mut TcpStream) -> u64 {
    let chunk = [b'x'; 1 << 16];
    let mut sent = 0;
    while sent < 2 * FLOOD_BYTES_MAX && stream.write_all(&chunk).is_ok() {
        sent += chunk.len() as u64;
    }
    sent
}

struct Hostile {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    /// The most bytes that a connection took of a reply without end.
    flooded: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Hostile {
    fn start(fault: Fault, wire: WireName) -> Hostile {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let stop = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&stop);
        let flooded = Arc::new(AtomicU64::new(0));
        let most = Arc::clone(&flooded);
        let thread = thread::spawn(move || {
            let tape = tape();
            for stream in listener.incoming().flatten() {
                if heard.load(Ordering::Relaxed) {
                    return;
                }
                stream.set_nodelay(true).expect("a socket");
                let (tape, most) = (Arc::clone(&tape), Arc::clone(&most));
                thread::spawn(move || serve(stream, fault, &tape, wire, &most));
            }
        });
        Hostile { address, stop, flooded, thread: Some(thread) }
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A connection wakes the listener.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(fault: Fault, at: (IoBackend, WireName), timeout_ms: u64) -> RunResult {
    let hostile = Hostile::start(fault, at.1);
    play_against(Address::Tcp(hostile.address.into()), at, timeout_ms)
}

fn play_against(address: Address, (io, wire): (IoBackend, WireName), timeout_ms: u64) -> RunResult {
    let options = ClientOptions {
        addresses: vec![address],
        hashing: Hashing::default(),
        connection_options: ConnectionOptions { wire, io, ..ConnectionOptions::default() },
        threads: 1,
        connections: 2,
        depth: 1,
        refill: Refill::Each,
        segment: (0, 1),
        timeout: Duration::from_millis(timeout_ms),
    };
    let mut client = Client::prepare(options, tape()).expect("connections");
    let limits =
        PhaseLimits::Play { start_in_ns: 0, ops: Some(6), duration_ns: Some(60_000_000_000) };
    client.run(limits, &RunControl::default()).expect("a window")
}

fn gets(result: &RunResult) -> &KindMetrics {
    let (_, gets) = result.metrics.kinds().next().expect("gets");
    let failed: u64 = gets.errors.iter().sum();
    assert_eq!(gets.attempts, gets.ok + failed + gets.wrong_values);
    gets
}

fn failures(result: &RunResult, failure: Failure) -> u64 {
    gets(result).errors[failure as usize]
}

#[test]
fn each_fault_is_counted_by_its_kind() {
    for (io, wire) in backends_and_wires() {
        for (fault, failure) in [
            (Fault::Closes, Failure::Connection),
            (Fault::Truncates, Failure::Connection),
            (Fault::Garbage, Failure::Protocol),
            (Fault::Refuses, Failure::Server),
        ] {
            let result = play(fault, (io, wire), 20_000);
            let recorded = gets(&result);
            assert_eq!(
                (recorded.attempts, recorded.ok, recorded.misses),
                (6, 0, 0),
                "{io:?} {wire:?} {fault:?}"
            );
            assert_eq!(
                failures(&result, failure),
                6,
                "{io:?} {wire:?} {fault:?} {:?}",
                recorded.errors
            );
            let again = result.metrics.reconnects;
            let kept = fault == Fault::Refuses;
            assert_eq!(again == 0, kept, "{io:?} {wire:?} {fault:?}: {again} reconnects");
        }
    }
}

#[test]
fn a_server_is_found_again_by_its_name() {
    for (io, wire) in backends_and_wires() {
        let hostile = Hostile::start(Fault::Closes, wire);
        // The name may stand for ::1, too, where no server listens.
        let name = format!("localhost:{}", hostile.address.port());
        let address = Address::parse(&name).expect("in every /etc/hosts");
        let result = play_against(address, (io, wire), 20_000);
        assert_eq!(failures(&result, Failure::Connection), 6, "{io:?} {wire:?}");
        assert!(result.metrics.reconnects >= 4, "{io:?} {wire:?}");
    }
}

#[test]
fn a_frozen_server_is_a_timeout() {
    for (io, wire) in backends_and_wires() {
        let result = play(Fault::Freezes, (io, wire), 50);
        let recorded = gets(&result);
        assert_eq!((recorded.ok, recorded.misses), (0, 0), "{io:?} {wire:?}");
        assert!(failures(&result, Failure::Timeout) > 0, "{io:?} {wire:?} {:?}", recorded.errors);
        assert!(recorded.response.min() >= 49_000_000, "a timeout counts as long as it lasted");
    }
}

#[test]
fn a_reply_to_another_operation_is_not_a_hit() {
    for (io, wire) in backends_and_wires() {
        // The binary protocol notices it by the command's number, the others by the key.
        let recorded = play(Fault::Mixes, (io, wire), 20_000);
        let counted = (gets(&recorded).ok, gets(&recorded).wrong_values);
        assert_eq!(counted, (0, 0), "{io:?} {wire:?}");
        assert_eq!(failures(&recorded, Failure::Protocol), 6, "{io:?} {wire:?}");
        assert!(recorded.metrics.reconnects > 0, "{io:?} {wire:?}: the connection was kept");
    }
}

#[test]
fn wrong_flags_are_a_wrong_value() {
    for (io, wire) in backends_and_wires() {
        let recorded = play(Fault::Flags, (io, wire), 20_000);
        let counted = (gets(&recorded).ok, gets(&recorded).hits, gets(&recorded).wrong_values);
        assert_eq!(counted, (0, 0, 6), "{io:?} {wire:?}");
        assert_eq!(recorded.metrics.reconnects, 0, "{io:?} {wire:?}");
    }
}

#[test]
fn a_surplus_reply_ends_the_connection() {
    for (io, wire) in backends_and_wires() {
        let recorded = play(Fault::Repeats, (io, wire), 20_000);
        // A reply too many belongs to no operation, or is taken for the reply to the next one,
        // depending on when it arrives.
        let counted = gets(&recorded);
        assert_eq!(counted.attempts, 6, "{io:?} {wire:?}");
        assert_eq!((counted.misses, counted.wrong_values), (0, 0), "{io:?} {wire:?}");
        assert_eq!(failures(&recorded, Failure::Protocol), counted.attempts - counted.ok);
    }
}

#[test]
fn a_slow_server_is_not_a_faulty_one() {
    for (io, wire) in backends_and_wires() {
        let recorded = play(Fault::Dribbles, (io, wire), 20_000);
        assert_eq!((gets(&recorded).ok, gets(&recorded).hits), (6, 6), "{io:?} {wire:?}");
        assert_eq!(recorded.metrics.reconnects, 0);
    }
}

#[test]
fn a_reply_without_end_is_cut_off() {
    for (io, wire) in backends_and_wires() {
        let hostile = Hostile::start(Fault::Floods, wire);
        let address = Address::Tcp(hostile.address.into());
        let result = play_against(address, (io, wire), 60_000);
        assert_eq!(failures(&result, Failure::Protocol), 6, "{io:?} {wire:?}");
        let flooded = hostile.flooded.load(Ordering::Relaxed);
        assert!(flooded < FLOOD_BYTES_MAX, "{io:?} {wire:?}: {flooded} bytes");
    }
}
