//! Random bytes: however requests are broken, and wherever they are cut, a session does not panic and its
//! answers do not depend on the cuts, and a server goes on serving its other connections.

use std::io::{Read, Write};
use std::net::Shutdown;

use cachemark_properties::connections::{Piece, only_complete_requests_count};
use cachemark_properties::datagrams::framed_like_a_session;
use cachemark_properties::session;
use cachemark_server::{IoMode, State};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::common::{ask, connect, serve};

/// Pieces of text and meta commands, whole and broken.
const TEXT: &[&[u8]] = &[
    b"get a\r\n",
    b"set a 0 0 3\r\nabc\r\n",
    b"set ",
    b"\r\n",
    b"a 0 0 ",
    b"5\r\n",
    b"incr a 1\r\n",
    b"\x00\xff",
    b"gat 1 a\r\n",
    b"cas a 0 0 1 1\r\nx\r\n",
    b"delete a\r\n",
    b"99999999999",
    b"noreply",
    b" ",
    b"flush_all\r\n",
    b"append a 0 0 1\r\n1\r\n",
    b"mg a v t f s h l k q O9\r\n",
    b"mg YQ== b k v N30 R10\r\n",
    b"ms a 2 ",
    b"MA N5 T10 I C7 E9 s\r\n12\r\n",
    b"ms b 1\r\n7\r\n",
    b"md a I T5\r\nmd b x\r\n",
    b"ma b v N0 J5 D3\r\n",
    b"mn\r\n",
    b"me a\r\n",
    b"verbosity noreply\r\n",
];

/// Packets, some with wrong lengths or opcodes.
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let sizes = (0_u16..4, prop_oneof![Just(0_u8), Just(4), Just(8), Just(20)], 0_u32..12);
    let wrong = prop_oneof![9 => Just(0_u32), 1 => 1_u32..2_000_000];
    (0_u8..0x26, sizes, wrong, any::<u32>(), 0_u64..3).prop_map(
        |(op, sizes, wrong, opaque, cas)| {
            let (key, extras, value) = sizes;
            let body = u32::from(key) + u32::from(extras) + value;
            let mut out = vec![0x80, op];
            out.extend_from_slice(&key.to_be_bytes());
            out.extend_from_slice(&[extras, 0, 0, 0]);
            out.extend_from_slice(&(body + wrong).to_be_bytes());
            out.extend_from_slice(&opaque.to_be_bytes());
            out.extend_from_slice(&cas.to_be_bytes());
            out.resize(out.len() + usize::from(extras), 0);
            out.resize(out.len() + usize::from(key), b'k');
            out.resize(out.len() + value as usize, b'5');
            out
        },
    )
}

/// Requests, whole and broken, or any bytes.
fn random_bytes() -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::collection::vec(proptest::sample::select(TEXT), 0..40);
    let binary = proptest::collection::vec(packet(), 0..12);
    let bytes = proptest::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        4 => text.prop_map(|words| words.concat()),
        4 => binary.prop_map(|packets| packets.concat()),
        1 => bytes,
    ]
}

proptest! {
    #[test]
    fn a_sessions_answers_do_not_depend_on_cuts_of_input(
        input in random_bytes(),
        cuts in proptest::collection::vec(1_usize..40, 1..20),
        fresh in proptest::sample::select(vec![session::with_items as fn() -> State, session::with_login]),
    ) {
        session::answers_do_not_depend_on_splits(fresh, &input, &cuts);
    }

    #[test]
    fn a_client_without_login_gets_nothing(input in random_bytes()) {
        session::clients_without_login_get_nothing(&input);
    }

    #[test]
    fn a_datagram_is_answered_as_a_session_answers(
        id in any::<u16>(),
        input in random_bytes(),
    ) {
        let frame = [&id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
        framed_like_a_session(&[&frame[..], &input].concat());
    }

    #[test]
    fn answers_depend_on_complete_requests_only(
        inputs in proptest::collection::vec((0_usize..4, random_bytes()), 1..6),
        sizes in proptest::collection::vec(1_usize..200, 1..20),
    ) {
        let mut sizes = sizes.iter().cycle();
        let mut pieces = Vec::new();
        for (number, input) in &inputs {
            let size = sizes.next().expect("an endless cycle");
            pieces.extend(input.chunks(*size).enumerate().map(|(at, piece)| (at, *number, piece)));
        }
        // The first pieces of all inputs, then the second pieces, and so on.
        pieces.sort_by_key(|(at, _, _)| *at);
        let pieces: Vec<Piece> = pieces.into_iter().map(|(_, number, piece)| (number, piece)).collect();
        only_complete_requests_count(&pieces);
    }
}

#[test]
fn a_server_survives_random_bytes_and_serves_other_connections() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for io in IoMode::available() {
        let (server, _) = serve(io);
        let mut other = connect(&server);
        for _ in 0..runner.config().cases {
            let input = random_bytes().new_tree(&mut runner).expect("some bytes").current();
            let mut stream = connect(&server);
            // The server may close the connection before it has read everything.
            let _ = stream.write_all(&input);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
            assert_eq!(ask(&mut other, b"mn\r\n", 4), b"MN\r\n");
        }
    }
}
