//! The null client, and the native one, against the null responder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Hashing, PhaseLimits, Refill, RunControl,
};
use cachemark_null::{RequestCounting, RequestPlan, Responder, play};
use cachemark_tape::{KeyShape, Schedule, Tape, Workload, generate, parse_mix};

fn tape(keys: u32, mix: &str) -> Tape {
    let workload = Workload {
        keys,
        shape: KeyShape::Pattern("key-{index:06}".to_owned()),
        mix: parse_mix(mix).expect("a mix"),
        run: 2,
        ..Workload::default()
    };
    let bytes = generate(&workload, &Schedule::closed(1000), 1).expect("a tape");
    Tape::from_bytes(bytes).expect("our own tape")
}

fn hit(tape: &Tape) -> Vec<u8> {
    let mut reply = b"VALUE key-000000 0 100\r\n".to_vec();
    reply.extend_from_slice(tape.value(0, 100));
    reply.extend_from_slice(b"\r\nEND\r\n");
    reply
}

/// Run a test while a responder answers.
fn with_responder(reply: &[u8], test: impl FnOnce(&Address)) {
    let any = Address::parse("127.0.0.1:0").expect("an address");
    let mut responder = Responder::listen(&any, reply, RequestCounting::Lines).expect("a port");
    let address = Address::parse(responder.address()).expect("an address");
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    let thread = thread::spawn(move || responder.run(&heard));
    test(&address);
    stop.store(true, Ordering::Relaxed);
    thread.join().expect("no panic").expect("no error");
}

#[test]
fn replies_are_counted_at_any_depth() {
    let tape = tape(50, "get=1");
    let plan = RequestPlan::of(&tape, None).expect("a plan");
    with_responder(&hit(&tape), |address| {
        for (connections, depth) in [(1, 1), (4, 16)] {
            let window = (Duration::from_millis(1), Duration::from_millis(20));
            let floor = play(address, &plan, (connections, depth), window).expect("a window");
            assert!(floor.ops > 0 && floor.elapsed_ns >= 20_000_000, "{floor:?}");
        }
    });
}

#[test]
fn with_one_key_the_native_client_reads_a_hit() {
    let tape = Arc::new(tape(1, "get=1"));
    with_responder(&hit(&tape), |address| {
        let options = ClientOptions {
            addresses: vec![address.clone()],
            hashing: Hashing::default(),
            connection_options: ConnectionOptions::default(),
            threads: 1,
            connections: 4,
            depth: 4,
            refill: Refill::Each,
            segment: (0, 1),
            timeout: Duration::from_secs(10),
        };
        let mut client = Client::prepare(options, Arc::clone(&tape)).expect("connections");
        let limits = PhaseLimits::Play { start_in_ns: 0, ops: Some(1000), duration_ns: None };
        let result = client.run(limits, &RunControl::default()).expect("a window");
        let (_, gets) = result.metrics.kinds().next().expect("gets");
        assert_eq!((gets.ok, gets.hits, gets.failed()), (1000, 1000, 0));
    });
}

#[test]
fn tapes_with_several_sizes_are_rejected() {
    assert!(RequestPlan::of(&tape(9, "get=1,set=1"), None).expect_err("a set").contains("set"));
    assert!(RequestPlan::of(&tape(9, "mget=1"), None).expect_err("an mget").contains("mget"));
}
