//! A tape has the same result in every protocol: on one server, on several, and on replicas.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Hashing, IoBackend, PhaseLimits,
    PrepareError, Refill, RunControl, RunResult, WireName,
};
use cachemark_tape::Tape;

use crate::backends::backends_and_wires;
use crate::common::{counts, server, tape};

const EVERY_KIND: &str = "get=3,gets,mget=3,set=2,add,replace,delete=2,touch,gat,version,mset,cas=2,\
                          append,prepend,incr=2,decr,set_noreply,delete_noreply,mset_noreply,\
                          incr_noreply,append_noreply,prepend_noreply";
const OPS: u64 = 2000;

/// The options of a play.
#[derive(Clone, Copy)]
struct Play {
    servers: usize,
    hashing: Hashing,
    wire: WireName,
    io: IoBackend,
    replicas: bool,
    connections: usize,
    depth: usize,
    reconnect_after: Option<NonZeroU64>,
}

const PLAIN: Play = Play {
    servers: 1,
    hashing: Hashing::Modulo,
    wire: WireName::Text,
    io: IoBackend::Epoll,
    replicas: false,
    connections: 1,
    depth: 1,
    reconnect_after: None,
};

/// Play the prefill and the tape once. Returns the number of items on each server as well.
fn play(tape: &Arc<Tape>, how: Play) -> Result<(RunResult, Vec<u64>), PrepareError> {
    let mut servers: Vec<_> = (0..how.servers).map(|_| server()).collect();
    let addresses = servers.iter().map(|(server, _)| Address::parse(&server.addresses[0]));
    let options = ClientOptions {
        addresses: addresses.collect::<Result<_, _>>().expect("addresses"),
        hashing: how.hashing,
        connection_options: ConnectionOptions {
            wire: how.wire,
            io: how.io,
            replicas: how.replicas,
            reconnect_after: how.reconnect_after,
            ..ConnectionOptions::default()
        },
        threads: 1,
        connections: how.connections,
        depth: how.depth,
        refill: Refill::Each,
        segment: (0, 1),
        timeout: Duration::from_secs(20),
    };
    let mut client = Client::prepare(options, Arc::clone(tape))?;
    let control = RunControl::default();
    client.run(PhaseLimits::Prefill, &control).expect("a prefill");
    let limits = PhaseLimits::Play { start_in_ns: 0, ops: Some(OPS), duration_ns: None };
    let result = client.run(limits, &control).expect("a window");
    drop(client);
    let items = servers.iter().map(|(_, state)| state.store.usage(0).items).collect();
    servers.iter_mut().for_each(|(server, _)| server.stop());
    Ok((result, items))
}

#[test]
fn all_protocols_and_backends_have_the_same_result() {
    let tape = tape(EVERY_KIND, OPS, 300);
    let (result, items) = play(&tape, PLAIN).expect("a client");
    let (expected, held) = (counts(&result), items[0]);
    assert_eq!(expected.len(), 22, "every kind was played");
    assert!(expected["mget"][2] > 0 && expected["mget"][3] > 0, "hits and misses");
    assert!(expected["cas"][2] > 0 && expected["incr"][3] > 0);
    for (io, wire) in backends_and_wires() {
        for hashing in [Hashing::Modulo, Hashing::Ketama] {
            let spread = Play { servers: 3, hashing, wire, io, ..PLAIN };
            for how in [Play { wire, io, ..PLAIN }, spread, Play { replicas: true, ..spread }] {
                let label = format!("{io:?} {wire:?} {hashing:?} {} {}", how.servers, how.replicas);
                let (result, items) = play(&tape, how).expect("a client");
                assert_eq!(counts(&result), expected, "{label}");
                assert_eq!(result.metrics.max_in_flight, 1, "{label}");
                if how.replicas {
                    assert_eq!(items, [held; 3], "{label}");
                } else {
                    assert_eq!(items.iter().sum::<u64>(), held, "{label}");
                }
            }
        }
    }
}

#[test]
fn connections_that_are_opened_again_lose_no_operation() {
    let tape = tape(EVERY_KIND, OPS, 300);
    let (result, items) = play(&tape, PLAIN).expect("a client");
    let (expected, held) = (counts(&result), items[0]);
    for (io, wire) in backends_and_wires() {
        for (servers, operations) in [(1, 1), (1, 7), (3, 50)] {
            let reconnect_after = NonZeroU64::new(operations);
            let how = Play { servers, wire, io, reconnect_after, ..PLAIN };
            let label = format!("{io:?} {wire:?} {servers} servers, {operations} operations");
            let (result, items) = play(&tape, how).expect("a client");
            let metrics = &result.metrics;
            assert_eq!((counts(&result), items.iter().sum()), (expected.clone(), held), "{label}");
            // A barrier is one more. With the last operation the window is over.
            let lives = (OPS - 1) / operations..=(OPS + metrics.barriers) / operations;
            assert!(lives.contains(&(metrics.renewed / servers as u64)), "{label}: {metrics:?}");
            assert_eq!((metrics.reconnects, metrics.failed_connects), (0, 0), "{label}");
        }
    }
}

#[test]
fn a_full_pipeline_ends_before_its_connection_is_closed() {
    let tape = tape("get=2,set=1,set_noreply=1", OPS, 300);
    let how = Play { connections: 3, depth: 8, reconnect_after: NonZeroU64::new(20), ..PLAIN };
    let (result, _) = play(&tape, how).expect("a client");
    let attempts: u64 = counts(&result).values().map(|counts| counts[0]).sum();
    assert_eq!(attempts, OPS);
    assert!((OPS / 28..=OPS / 19).contains(&result.metrics.renewed), "{}", result.metrics.renewed);
}

#[test]
fn a_fetch_stores_after_a_miss() {
    let tape = tape("fetch=8,delete=2", OPS, 300);
    let (result, items) = play(&tape, PLAIN).expect("a client");
    let (expected, held) = (counts(&result), items[0]);
    let fetch = expected["fetch"];
    assert_eq!((fetch[0], fetch[0]), (fetch[1], fetch[2] + fetch[3]), "hits and misses are all");
    assert!(fetch[2] > 0 && fetch[3] > 30, "each key is missed once at least: {fetch:?}");
    for wire in WireName::ALL {
        for servers in [1, 3] {
            let (result, items) = play(&tape, Play { wire, servers, ..PLAIN }).expect("a client");
            assert_eq!(counts(&result), expected, "{wire:?} {servers}");
            assert_eq!(items.iter().sum::<u64>(), held, "{wire:?} {servers}");
        }
    }
    let replicas = Play { servers: 3, replicas: true, ..PLAIN };
    assert!(matches!(play(&tape, replicas), Err(PrepareError::Unsupported(_))));
}

#[test]
fn replicas_are_on_several_servers() {
    let alone = play(&tape("get=1", OPS, 300), Play { replicas: true, ..PLAIN });
    assert!(matches!(alone, Err(PrepareError::Unsupported(text)) if text.contains("one server")));
}

#[test]
fn a_flush_works_with_one_server_only() {
    let tape = tape("get=20,set=5,flush,flush_noreply", OPS, 300);
    let (result, items) = play(&tape, PLAIN).expect("a client");
    let (expected, held) = (counts(&result), items[0]);
    assert_eq!(expected.len(), 4, "every kind was played");
    assert!(expected["get"][2] > 0 && expected["get"][3] > expected["get"][2], "mostly misses");
    for wire in WireName::ALL {
        let (result, items) = play(&tape, Play { wire, ..PLAIN }).expect("a client");
        assert_eq!((counts(&result), items[0]), (expected.clone(), held), "{wire:?}");
    }
    let several = play(&tape, Play { servers: 3, ..PLAIN });
    assert!(matches!(several, Err(PrepareError::Unsupported(_))));
}

#[test]
fn depth_counts_operations_per_channel() {
    let tape = tape("get=2,mget=2,set=1,mset=1,cas=1,set_noreply=1", OPS, 300);
    for wire in WireName::ALL {
        let how = Play { servers: 3, wire, connections: 2, depth: 8, ..PLAIN };
        let (result, _) = play(&tape, how).expect("a client");
        let attempts: u64 = counts(&result).values().map(|counts| counts[0]).sum();
        assert_eq!(attempts, OPS);
        assert!((9..=16).contains(&result.metrics.max_in_flight), "{wire:?}");
    }
}

#[test]
fn unsupported_kinds_are_rejected_before_anything_is_sent() {
    let tape = tape("touch_noreply", OPS, 300);
    for (wire, fits) in [(WireName::Text, true), (WireName::Meta, true), (WireName::Binary, false)]
    {
        match play(&tape, Play { wire, ..PLAIN }) {
            Ok((result, _)) => {
                counts(&result);
                assert!(fits);
            }
            Err(PrepareError::Unsupported(text)) => {
                assert!(!fits && text.contains("touch_noreply"), "{text}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}
