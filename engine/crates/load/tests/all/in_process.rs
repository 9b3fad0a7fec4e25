//! A tape has the same result on the store itself and on a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Hashing, InProcess, PhaseLimits,
    PrepareError, Refill, RunControl,
};
use cachemark_storage::Store;
use cachemark_tape::Tape;

use crate::common::{MEMORY_BYTES, counts, server, tape};

const EVERY_KIND: &str = "get=3,gets,mget=3,set=2,add,replace,delete=2,touch,gat,version,mset,\
                          append,prepend,cas=2,incr=2,decr,fetch,flush=0.01";
const OPS: u64 = 3000;

const ONCE: PhaseLimits = PhaseLimits::Play { start_in_ns: 0, ops: Some(OPS), duration_ns: None };

fn over_the_network(tape: &Arc<Tape>) -> BTreeMap<&'static str, [u64; 8]> {
    let (server, _state) = server();
    let options = ClientOptions {
        addresses: vec![Address::parse(&server.addresses[0]).expect("an address")],
        hashing: Hashing::default(),
        connection_options: ConnectionOptions::default(),
        threads: 1,
        connections: 1,
        depth: 1,
        refill: Refill::Each,
        segment: (0, 1),
        timeout: Duration::from_secs(30),
    };
    let mut client = Client::prepare(options, Arc::clone(tape)).expect("a client");
    client.run(PhaseLimits::Prefill, &RunControl::default()).expect("a prefill");
    counts(&client.run(ONCE, &RunControl::default()).expect("a run"))
}

#[test]
fn a_tape_has_the_same_result_without_a_network() {
    let tape = tape(EVERY_KIND, OPS, 300);
    let folder = tempfile::tempdir_in("/dev/shm").expect("shared memory");
    let shared = Store::create(&folder.path().join("store"), MEMORY_BYTES, Some(12));
    let expected = over_the_network(&tape);
    for store in [Store::new(MEMORY_BYTES), shared.expect("a store")] {
        let callers = InProcess::prepare(Arc::new(store), Arc::clone(&tape), 1, (0, 1));
        let mut callers = callers.expect("callers");
        callers.run(PhaseLimits::Prefill, &RunControl::default());
        let result = callers.run(ONCE, &RunControl::default());
        assert_eq!(result.metrics.failed(), 0);
        assert!(result.elapsed_ns > 0 && result.metrics.ok() == OPS);
        assert_eq!(counts(&result), expected);
    }
}

#[test]
fn threads_and_segments_share_a_tape() {
    let tape = tape("get=9,set", OPS, 300);
    let store = Arc::new(Store::new(MEMORY_BYTES));
    let mut ok = 0;
    for segment in 0..2 {
        let callers = InProcess::prepare(Arc::clone(&store), Arc::clone(&tape), 3, (segment, 2));
        let mut callers = callers.expect("callers");
        callers.run(PhaseLimits::Prefill, &RunControl::default());
        let limits = PhaseLimits::Play { start_in_ns: 0, ops: Some(OPS / 2), duration_ns: None };
        ok += callers.run(limits, &RunControl::default()).metrics.ok();
    }
    assert_eq!(ok, OPS);
    let usage = store.usage(1);
    assert!(usage.counters.get_hits > 0 && usage.counters.sets > 60);
}

#[test]
fn operations_that_a_call_cannot_do_are_rejected() {
    let refused = |tape: Arc<Tape>| match InProcess::prepare(
        Arc::new(Store::new(MEMORY_BYTES)),
        tape,
        1,
        (0, 1),
    ) {
        Err(PrepareError::Unsupported(text)) => text,
        _ => panic!("it is not refused"),
    };
    let quiet = refused(tape("set_noreply", OPS, 300));
    assert!(quiet.contains("set_noreply"), "{quiet}");
    let store = || Arc::new(Store::new(MEMORY_BYTES));
    let whole = || tape("get", OPS, 300);
    assert!(InProcess::prepare(store(), whole(), 0, (0, 1)).is_err());
    assert!(InProcess::prepare(store(), whole(), 1, (1, 1)).is_err());
}
