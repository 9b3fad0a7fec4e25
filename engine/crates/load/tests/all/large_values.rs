//! Values that are written directly from the tape arrive unchanged, in each protocol, and also when the
//! sockets are full.

use std::sync::Arc;
use std::time::Duration;

use cachemark_load::{
    Address, Client, ClientOptions, ConnectionOptions, Hashing, PhaseLimits, Refill, RunControl,
};

use crate::backends::backends_and_wires;
use crate::common::{counts, server, tape};

const OPS: u64 = 600;
/// The size of the largest value: some values are copied, most are not.
const MOST_BYTES: u32 = 60_000;

#[test]
fn values_are_read_as_they_were_stored() {
    let tape = tape("get=3,set=3,mset,cas,add,set_noreply", OPS, MOST_BYTES);
    for (io, wire) in backends_and_wires() {
        for depth in [1, 16] {
            let (mut server, _state) = server();
            let options = ClientOptions {
                addresses: vec![Address::parse(&server.addresses[0]).expect("an address")],
                hashing: Hashing::Modulo,
                connection_options: ConnectionOptions { wire, io, ..ConnectionOptions::default() },
                threads: 1,
                connections: 2,
                depth,
                refill: Refill::Each,
                segment: (0, 1),
                timeout: Duration::from_secs(60),
            };
            let mut client = Client::prepare(options, Arc::clone(&tape)).expect("a client");
            let control = RunControl::default();
            client.run(PhaseLimits::Prefill, &control).expect("a prefill");
            let limits = PhaseLimits::Play { start_in_ns: 0, ops: Some(OPS), duration_ns: None };
            let result = client.run(limits, &control).expect("a window");
            // No operation failed, and no value was wrong.
            let recorded = counts(&result);
            assert!(recorded["get"][2] > 0, "{io:?} {wire:?} {depth}: hits");
            assert_eq!(
                recorded.values().map(|counts| counts[1]).sum::<u64>(),
                OPS,
                "{io:?} {wire:?} {depth}"
            );
            drop(client);
            server.stop();
        }
    }
}
