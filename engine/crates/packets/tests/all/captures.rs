//! Captures of all kinds: what clients asked and what servers answered is read, and what is missing is counted.

use cachemark_properties::packets::{
    self, ACK, FILES, File, LINKS, Link, Sent, asked, capture, read, turns,
};
use proptest::prelude::*;

const FILE: File = File::Pcap { big_endian: false, ns: false };

fn of(sent: &[Sent]) -> Vec<u8> {
    capture(FILE, Link::Ethernet, false, 70_000, sent)
}

fn lines(sent: &[Sent]) -> Vec<String> {
    read(&of(sent)).expect("a capture").0
}

fn left_out(capture: &[u8]) -> Vec<(String, u64)> {
    read(capture).expect("a capture").1.left_out.into_iter().collect()
}

#[test]
fn every_kind_of_file_and_of_link_is_read() {
    let request = b"set a 0 60 3\r\nabc\r\nget a b\r\n";
    let expected = ["set a 3 bytes for 60 s", "get a", "get b joined"];
    for file in FILES {
        for link in LINKS {
            for v6 in [false, true] {
                let bytes = capture(file, link, v6, 70_000, &asked(request, &[7, 9]));
                let (found, summary) = read(&bytes).expect("a capture");
                assert_eq!(found, expected, "{file:?} {link:?} IPv6: {v6}");
                assert_eq!(summary.other_lines["packets"], 5);
            }
        }
    }
}

#[test]
fn requests_behind_a_cut_are_counted() {
    let set = [&b"set a 0 0 100\r\n"[..], &[b'v'; 100], b"\r\nget b\r\nget c\r\n"].concat();
    let sent = turns(&[(&set, b""), (b"get d\r\n", b"")]);
    let short = capture(FILE, Link::Ethernet, false, 90, &sent);
    assert_eq!(read(&short).expect("a capture").0, ["set a 100 bytes", "get d"]);
    assert_eq!(left_out(&short), [("behind the cut of packets (at least)".to_owned(), 1)]);
}

#[test]
fn a_connection_that_began_before_starts_at_its_next_request() {
    let all = turns(&[
        (b"set a 0 0 30\r\nget x\r\nnot a request", b""),
        (b"but the end of it\r\nget b\r\n", b"STORED\r\nEND\r\n"),
        (b"get c\r\n", b"VALUE c 0 1\r\nx\r\nEND\r\n"),
    ]);
    let (found, summary) = read(&of(&all[4..])).expect("a capture");
    assert_eq!(found, ["get b", "get c"]);
    let left_out: Vec<_> = summary.left_out.into_iter().collect();
    assert_eq!(left_out, [("that began before the capture (at least)".to_owned(), 1)]);
}

#[test]
fn a_connection_that_only_quits_has_nothing_left_out() {
    let ended = turns(&[(b"get a\r\n", b"END\r\n"), (b"quit\r\n", b"")]);
    assert_eq!(left_out(&of(&ended[4..])), []);
}

#[test]
fn a_first_request_that_is_cut_is_no_earlier_one() {
    let get = [&b"get"[..], &b" a".repeat(90), b"\r\n"].concat();
    let short = capture(FILE, Link::Ethernet, false, 90, &turns(&[(&get, b"END\r\n")]));
    assert_eq!(left_out(&short), [("behind the cut of packets (at least)".to_owned(), 1)]);
}

#[test]
fn missing_packets_are_counted_and_what_follows_is_read() {
    let turn: [(&[u8], &[u8]); 3] =
        [(b"get a\r\n", b"END\r\n"), (b"get b\r\n", b"END\r\n"), (b"get c\r\n", b"END\r\n")];
    let mut sent = turns(&turn);
    sent.remove(4);
    sent.push(Sent::tcp(3_000_000_000, true, 21, 15, b"get d\r\n"));
    let (found, summary) = read(&of(&sent)).expect("a capture");
    assert_eq!(found, ["get a no", "get c", "get d"]);
    let left_out: Vec<_> = summary.left_out.into_iter().collect();
    assert_eq!(left_out, [("in packets that are missing (at least)".to_owned(), 1)]);
    assert_eq!(summary.other_lines["unseen bytes of clients"], 7);
}

#[test]
fn a_missing_end_of_a_connection_is_counted() {
    let turn: [(&[u8], &[u8]); 2] = [(b"get a\r\n", b"END\r\n"), (b"get b\r\n", b"END\r\n")];
    let mut sent = turns(&turn);
    // The second request is missing; its reply acknowledges it.
    sent.remove(4);
    let missing = [("in packets that are missing (at least)".to_owned(), 1)];
    assert_eq!(left_out(&of(&sent)), missing);
    assert_eq!(left_out(&of(&turns(&turn))), []);
}

#[test]
fn datagrams_are_matched_by_their_numbers() {
    let frame = |request: u8, number: u8, count: u8, bytes: &[u8]| {
        [&[0, request, 0, number, 0, count, 0, 0], bytes].concat()
    };
    let datagrams = [
        (true, frame(1, 0, 1, b"get a\r\n")),
        (true, frame(2, 0, 1, b"get b\r\n")),
        (false, frame(2, 0, 1, b"END\r\n")),
        (false, frame(1, 0, 2, b"VALUE a 0 9\r\nlong")),
        (false, frame(1, 1, 2, b"value\r\nEND\r\n")),
    ];
    let of = |(number, (from_client, bytes)): (usize, (bool, Vec<u8>))| Sent {
        udp: true,
        ..Sent::tcp(number as u64 * 1000, from_client, 0, 0, &bytes)
    };
    let sent: Vec<Sent> = datagrams.into_iter().enumerate().map(of).collect();
    assert_eq!(lines(&sent), ["get a 9 bytes ok", "get b no"]);
}

#[test]
fn a_new_connection_with_the_same_ports_is_another_one() {
    let mut sent = turns(&[(b"get a\r\n", b"END\r\n")]);
    let mut again = turns(&[(b"get b\r\n", b"END\r\n")]);
    again[0].place += 900;
    again[1].expects += 900;
    again[2].place += 900;
    again[3].expects += 900;
    sent.append(&mut again);
    let (found, summary) = read(&of(&sent)).expect("a capture");
    assert_eq!((found.len(), summary.other_lines["connections"]), (2, 2), "{found:?}");
}

#[test]
fn foreign_and_unreadable_packets_are_reported() {
    let tls = turns(&[(b"\x16\x03\x01\x02\x00hello", b"")]);
    assert_eq!(left_out(&of(&tls)), [("in connections with TLS (at least)".to_owned(), 1)]);
    let http = turns(&[(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"")]);
    assert_eq!(left_out(&of(&http)), [("that were not understood (at least)".to_owned(), 1)]);
    let refused = read(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect_err("no capture");
    assert!(refused.starts_with("it is no capture"), "{refused}");
    assert_eq!(read(b"").expect_err("empty"), "it is empty");
}

#[test]
fn a_truncated_file_is_read_up_to_its_end() {
    let whole = of(&turns(&[(b"get a\r\n", b"END\r\n"), (b"get b\r\n", b"")]));
    let (found, summary) = read(&whole[..whole.len() - 3]).expect("a capture");
    assert_eq!(found.len(), 2);
    assert_eq!(summary.other_lines["a packet that the file's end cut off"], 1);
}

#[test]
fn a_clock_that_is_set_back_stands_still() {
    let mut sent = turns(&[(b"get a\r\n", b"END\r\n"), (b"get b\r\n", b"END\r\n")]);
    sent[2].at_ns = 100_000_000_000;
    sent[3].at_ns = 100_000_000_000;
    sent[4].flags = ACK;
    let (found, summary) = read(&of(&sent)).expect("a capture");
    assert_eq!(found, ["get a no", "get b no"]);
    assert_eq!(summary.other_lines["times that the clock went back"], 1);
}

#[test]
fn a_second_connection_with_the_same_ports_is_another_one() {
    let mut sent = turns(&[(b"set a 0 0 9000\r\nthe beginning of a long value", b"")]);
    sent.push(Sent::tcp(9_000_000, true, 1 << 30, 0, b"get b\r\n"));
    let (found, summary) = read(&of(&sent)).expect("a capture");
    assert_eq!((found.len(), summary.other_lines["connections"]), (2, 2), "{found:?}");
}

#[test]
fn a_clock_that_jumps_often_breaks_nothing() {
    let turn: (&[u8], &[u8]) = (b"get a\r\n", b"END\r\n");
    let mut sent = turns(&[turn; 40]);
    for (number, sent) in sent.iter_mut().enumerate() {
        sent.at_ns = if number % 2 == 0 { 0 } else { 4_200_000_000_000_000_000 };
    }
    assert_eq!(lines(&sent).len(), 40);
}

#[test]
fn a_datagram_that_is_seen_twice_is_one_request() {
    let ask = |at_ns, number: u8| Sent {
        udp: true,
        ..Sent::tcp(
            at_ns,
            true,
            0,
            0,
            &[&[0, number, 0, 0, 0, 1, 0, 0], &b"get a\r\n"[..]].concat(),
        )
    };
    let sent = [ask(1000, 1), ask(3000, 1), ask(4000, 2), ask(90_000_000, 2)];
    let (found, summary) = read(&of(&sent)).expect("a capture");
    // The last one is a request with the same number, much later.
    assert_eq!((found.len(), summary.other_lines["segments that came again"]), (3, 1));
}

#[test]
fn packets_of_a_link_that_is_not_read_are_counted() {
    let sent = turns(&[(b"get a\r\n", b"END\r\n")]);
    let pcapng = capture(File::Pcapng { big_endian: false }, Link::Ethernet, false, 70_000, &sent);
    let mut wireless = pcapng.clone();
    // The link of the interface, behind the section's header and the block's.
    wireless[28 + 8] = 127;
    let both = [&*wireless, &*pcapng].concat();
    assert_eq!(
        left_out(&both),
        [("in packets of links that are not read (at least)".to_owned(), 4)]
    );
    let refused = read(&wireless).expect_err("nothing is readable");
    assert!(refused.contains("links of type 127 are not read"), "{refused}");
}

#[test]
fn a_capture_without_the_port_is_refused() {
    let mut bytes = of(&turns(&[(b"get a\r\n", b"END\r\n")]));
    let port = 11211_u16.to_be_bytes();
    for at in 0..bytes.len() - 1 {
        if bytes[at..at + 2] == port {
            bytes[at..at + 2].copy_from_slice(&11311_u16.to_be_bytes());
        }
    }
    let refused = read(&bytes).expect_err("no port of ours");
    assert!(refused.contains("has 4 packets, and none to or from port 11211"), "{refused}");
}

fn requests() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        "get( [a-z]{1,9}){1,9}\r\n",
        "(set|add|append) [a-z]{1,9} 0 [0-9]{1,3} 5( noreply)?\r\nab\r\nc\r\n",
        "(mg [a-z]{1,5} v q k\r\n){0,4}mn\r\n",
        "ms [a-z]{1,5} 3 T9\r\nxyz\r\n",
        "(delete|touch|incr) [a-z]{1,9} 5\r\n",
    ];
    proptest::collection::vec(one, 1..20).prop_map(|all| all.concat().into_bytes())
}

proptest! {
    #[test]
    fn segments_do_not_matter(
        head in proptest::collection::vec(any::<u8>(), 17),
        request in requests(),
    ) {
        let head = [&[15, head[16]], &head[..15]].concat();
        packets::segments_do_not_matter(&[head, request].concat());
    }

    #[test]
    fn any_conversation_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        packets::conversation_is_read(&bytes);
    }

    #[test]
    fn a_damaged_capture_is_refused_or_read(
        file in 0..FILES.len(),
        at in 0_usize..400,
        byte in any::<u8>(),
        request in requests(),
    ) {
        let mut bytes = capture(FILES[file], Link::Cooked2, false, 200, &asked(&request, &[9, 90]));
        let at = at % bytes.len();
        bytes[at] ^= byte;
        packets::refused_or_read(&bytes);
    }
}
