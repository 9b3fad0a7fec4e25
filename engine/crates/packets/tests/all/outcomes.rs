//! Outcomes: which requests hit, missed or failed, as the replies tell; if it is not certain, none.

use cachemark_properties::packets::{File, Link, Sent, capture, read, turns};

const FILE: File = File::Pcap { big_endian: false, ns: false };

fn of(sent: &[Sent]) -> Vec<u8> {
    capture(FILE, Link::Ethernet, false, 70_000, sent)
}

fn lines(sent: &[Sent]) -> Vec<String> {
    read(&of(sent)).expect("a capture").0
}

#[test]
fn text_replies_tell_hits_and_misses() {
    let found = lines(&turns(&[
        (b"get a b c\r\n", b"VALUE a 0 3\r\nabc\r\nVALUE c 0 1\r\nc\r\nEND\r\n"),
        (b"set a 0 0 1\r\nx\r\nadd a 0 0 1\r\nx\r\n", b"STORED\r\nNOT_STORED\r\n"),
        (b"delete a noreply\r\ndelete b\r\nincr n 1\r\n", b"NOT_FOUND\r\n5\r\n"),
        (b"stats\r\nversion\r\nget a\r\n", b"STAT a 1\r\nEND\r\nVERSION 1\r\nEND\r\n"),
        (b"gat 30 a\r\ntouch a -1\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\nTOUCHED\r\n"),
    ]));
    let expected = [
        "get a 3 bytes ok",
        "get b no joined",
        "get c 1 bytes ok joined",
        "set a 1 bytes ok",
        "add a 1 bytes no",
        "delete a",
        "delete b no",
        "incr n ok",
        "get a no",
        "gat a 1 bytes for 30 s ok",
        "touch a for 1 s ok",
    ];
    assert_eq!(found, expected);
}

#[test]
fn meta_replies_tell_hits_and_misses() {
    let found = lines(&turns(&[
        (b"mg a v\r\nmg b v\r\nms a 1 T9\r\nx\r\n", b"VA 2\r\nxx\r\nEN\r\nHD\r\n"),
        (
            b"mg a v q k\r\nmg b v q k\r\nmg c v q k\r\nmn\r\n",
            b"VA 1 ka\r\nx\r\nVA 1 kc\r\nx\r\nMN\r\n",
        ),
        (b"md a q O1\r\nmd b q O2\r\nmn\r\n", b"NF O2\r\nMN\r\n"),
        (b"mg a T9\r\nmg a T9 v\r\n", b"HD\r\nVA 1\r\nx\r\n"),
        (b"mg a v q\r\nmg b v q\r\nmn\r\nma n\r\n", b"VA 1\r\nx\r\nMN\r\nHD\r\n"),
        (
            b"mg Yg== b v k\r\nms c 0 MA\r\n\r\nms c 1 C7\r\nx\r\n",
            b"VA 1 kYg== b\r\nx\r\nNS\r\nEX\r\n",
        ),
    ]));
    let expected = [
        "get a 2 bytes ok",
        "get b no",
        "set a 1 bytes for 9 s ok",
        "get a 1 bytes ok",
        "get b no joined",
        "get c 1 bytes ok joined",
        "delete a ok",
        "delete b no",
        "touch a for 9 s ok",
        "gat a 1 bytes for 9 s ok",
        // The capture cannot say which of the two was found.
        "get a",
        "get b joined",
        "incr n ok",
        "get b 1 bytes ok",
        "append c 0 bytes no",
        "cas c 1 bytes no",
    ];
    assert_eq!(found, expected);
}

fn binary(magic: u8, opcode: u8, status: u16, opaque: u8, parts: [&[u8]; 3]) -> Vec<u8> {
    let [extras, key, value] = parts;
    let body = extras.len() + key.len() + value.len();
    let mut packet = vec![magic, opcode, 0, key.len() as u8, extras.len() as u8, 0];
    packet.extend_from_slice(&status.to_be_bytes());
    packet.extend_from_slice(&(body as u32).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0, opaque, 0, 0, 0, 0, 0, 0, 0, 0]);
    [&packet, extras, key, value].concat()
}

#[test]
fn binary_requests_and_replies_are_read() {
    let ask = |opcode, opaque, parts| binary(0x80, opcode, 0, opaque, parts);
    let answer = |opcode, status, opaque, parts| binary(0x81, opcode, status, opaque, parts);
    let set = ask(1, 1, [&[0, 0, 0, 0, 0, 0, 0, 60], b"a", b"xyz"]);
    let stored = answer(1, 0, 1, [b"", b"", b""]);
    let quiet = [
        ask(0x0d, 0, [b"", b"a", b""]),
        ask(0x0d, 0, [b"", b"b", b""]),
        ask(0x0d, 0, [b"", b"c", b""]),
        ask(0x0a, 9, [b"", b"", b""]),
    ];
    let found = [
        answer(0x0d, 0, 0, [&[0; 4], b"a", b"xyz"]),
        answer(0x0d, 0, 0, [&[0; 4], b"c", b"z"]),
        answer(0x0a, 0, 9, [b"", b"", b""]),
    ];
    let get = ask(0, 3, [b"", b"a", b""]);
    let missed = answer(0, 1, 3, [b"", b"", b"Not found"]);
    let read =
        lines(&turns(&[(&set, &stored), (&quiet.concat(), &found.concat()), (&get, &missed)]));
    let expected = [
        "set a 3 bytes for 60 s ok",
        "get a 3 bytes ok",
        "get b no joined",
        "get c 1 bytes ok joined",
        "get a no",
    ];
    assert_eq!(read, expected);
}

#[test]
fn values_need_not_be_captured() {
    let value = [b'v'; 500];
    let set = [&b"set a 0 0 500\r\n"[..], &value, b"\r\n"].concat();
    let hit = [&b"VALUE a 0 500\r\n"[..], &value, b"\r\nEND\r\n"].concat();
    let sent = turns(&[(&set, b"STORED\r\n"), (b"get a\r\n", &hit), (b"get b\r\n", b"END\r\n")]);
    let short = capture(FILE, Link::Ethernet, false, 90, &sent);
    let (found, summary) = read(&short).expect("a capture");
    // The END behind the value is cut off, so that the step is lost until nothing is under way.
    assert_eq!(found, ["set a 500 bytes ok", "get a 500 bytes ok", "get b no"]);
    assert_eq!(summary.left_out.len(), 0);
    assert_eq!(summary.other_lines["packets that the capture cut"], 2);
}

/// A client that always has two requests under way: each segment of the server answers the request before the last.
fn overlapping(keys: &[&str], is_hit: impl Fn(&str) -> bool) -> Vec<Sent> {
    let requests: Vec<String> = keys.iter().map(|key| format!("get {key}\r\n")).collect();
    let reply = |key: &str| {
        let value = if is_hit(key) { format!("VALUE {key} 0 1\r\nx\r\n") } else { String::new() };
        value + "END\r\n"
    };
    let mut sent = Vec::new();
    let mut places = [0_u32; 2];
    let mut send = |from_client: bool, text: &str| {
        let (own, other) = (usize::from(!from_client), usize::from(from_client));
        let at_ns = 1000 * sent.len() as u64;
        sent.push(Sent::tcp(at_ns, from_client, places[own], places[other], text.as_bytes()));
        places[own] += text.len() as u32;
    };
    send(true, &requests[0]);
    for (number, request) in requests.iter().enumerate().skip(1) {
        send(true, request);
        send(false, &reply(keys[number - 1]));
    }
    sent
}

#[test]
fn outcomes_of_a_client_that_overlaps_are_right_or_unknown() {
    let keys: Vec<String> =
        (0..60).map(|number| format!("{}{number}", ["h", "m"][number / 3 % 2])).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let sent = overlapping(&keys, |key| key.starts_with('h'));
    for from in 0..8 {
        let found = lines(&sent[from..]);
        assert!(found.len() > 50, "{found:?}");
        let wrong = |line: &&String| {
            line.contains("get m") && line.contains(" ok")
                || line.contains("get h") && line.ends_with(" no")
        };
        assert_eq!(found.iter().find(wrong), None, "from segment {from}");
    }
}

#[test]
fn a_client_that_waits_is_trusted_after_three_replies() {
    let all = turns(&[
        (b"get a\r\n", b"END\r\n"),
        (b"get b\r\n", b"VALUE b 0 1\r\nx\r\nEND\r\n"),
        (b"get b\r\n", b"VALUE b 0 1\r\nx\r\nEND\r\n"),
        (b"get c\r\n", b"VALUE c 0 1\r\nx\r\nEND\r\n"),
        (b"get b\r\n", b"VALUE b 0 1\r\nx\r\nEND\r\n"),
        (b"get d\r\n", b"END\r\n"),
    ]);
    let found = lines(&all[3..]);
    assert_eq!(found, ["get b", "get b", "get c", "get b 1 bytes ok", "get d no"]);
}

#[test]
fn a_refused_request_gives_no_other_one_its_reply() {
    let refused = b"set a 0 x 1\r\ny\r\nget b\r\nget c\r\nget d\r\n";
    let replies = [
        &b"CLIENT_ERROR bad command line format\r\n"[..],
        b"END\r\nVALUE c 0 1\r\nx\r\nEND\r\nEND\r\n",
    ];
    assert_eq!(lines(&turns(&[(refused, &replies.concat())])), ["get b", "get c", "get d"]);
}

#[test]
fn quiet_binary_reads_with_one_number_have_no_outcome() {
    let ask = |opcode, opaque, key: &[u8]| binary(0x80, opcode, 0, opaque, [b"", key, b""]);
    let quiet = [ask(9, 0, b"a"), ask(9, 0, b"b"), ask(0x0a, 7, b"")].concat();
    let hit =
        [binary(0x81, 9, 0, 0, [&[0; 4], b"", b"xyz"]), binary(0x81, 0x0a, 0, 7, [b"", b"", b""])];
    let numbered = [ask(9, 1, b"a"), ask(9, 2, b"b"), ask(0x0a, 7, b"")].concat();
    let second = [binary(0x81, 9, 0, 2, [&[0; 4], b"", b"xyz"]), hit[1].clone()].concat();
    let found = lines(&turns(&[(&quiet, &hit.concat()), (&numbered, &second)]));
    assert_eq!(found, ["get a", "get b joined", "get a no", "get b 3 bytes ok joined"]);
}

/// A client that waits for each reply: every third read misses.
fn waiting_client(number: usize) -> (Vec<Sent>, Vec<String>) {
    let keys: Vec<String> =
        (0..number).map(|at| format!("{}{at}", ["m", "h", "h"][at % 3])).collect();
    let asked: Vec<String> = keys.iter().map(|key| format!("get {key}\r\n")).collect();
    let reply = |key: &String| match key.starts_with('h') {
        true => format!("VALUE {key} 0 1\r\nx\r\nEND\r\n"),
        false => "END\r\n".to_owned(),
    };
    let replies: Vec<String> = keys.iter().map(reply).collect();
    let pairs: Vec<(&[u8], &[u8])> =
        asked.iter().zip(&replies).map(|(ask, reply)| (ask.as_bytes(), reply.as_bytes())).collect();
    (turns(&pairs), keys)
}

#[test]
fn swapped_packets_keep_every_outcome() {
    let (mut sent, keys) = waiting_client(60);
    for at in (4..sent.len() - 1).step_by(7) {
        sent.swap(at, at + 1);
        let later = sent[at].at_ns;
        sent[at].at_ns = sent[at + 1].at_ns;
        sent[at + 1].at_ns = later;
    }
    let found = lines(&sent);
    let expected = |key: &String| match key.starts_with('h') {
        true => format!("get {key} 1 bytes ok"),
        false => format!("get {key} no"),
    };
    assert_eq!(found, keys.iter().map(expected).collect::<Vec<String>>());
}

#[test]
fn a_lost_packet_costs_few_outcomes() {
    let (sent, keys) = waiting_client(60);
    for lost in 20..60 {
        let mut sent = sent.clone();
        sent.remove(lost);
        let found = lines(&sent);
        let wrong = |line: &&String| {
            line.contains("get m") && line.contains(" ok")
                || line.contains("get h") && line.ends_with(" no")
        };
        assert_eq!(found.iter().find(wrong), None, "without segment {lost}");
        let known = found.iter().filter(|line| line.ends_with(" ok") || line.ends_with(" no"));
        assert!(known.count() >= keys.len() - 3, "without segment {lost}: {found:?}");
    }
}
