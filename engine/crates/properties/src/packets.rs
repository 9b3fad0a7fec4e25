//! Captured packets: what is read from a connection does not depend on how its bytes were sent, and a capture of any
//! bytes is refused or read.

use std::io::Cursor;

use cachemark_packets::{Capture, Limits, Ports};
use cachemark_trace::Requests;
use cachemark_trace::file::Summary;

pub const SERVER: u16 = 11211;
const CLIENT: u16 = 40_000;
/// The first bytes of both directions. That of the client is near the end of its numbers.
pub const FIRST: [u32; 2] = [u32::MAX - 40, 7_000];

/// How packets are written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    Pcap { big_endian: bool, ns: bool },
    Pcapng { big_endian: bool },
}

pub const FILES: [File; 6] = [
    File::Pcap { big_endian: false, ns: false },
    File::Pcap { big_endian: false, ns: true },
    File::Pcap { big_endian: true, ns: false },
    File::Pcap { big_endian: true, ns: true },
    File::Pcapng { big_endian: false },
    File::Pcapng { big_endian: true },
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    Vlan,
    QinQ,
    Cooked,
    Cooked2,
    Raw,
    Loopback,
}

pub const LINKS: [Link; 7] = [
    Link::Ethernet,
    Link::Vlan,
    Link::QinQ,
    Link::Cooked,
    Link::Cooked2,
    Link::Raw,
    Link::Loopback,
];

impl Link {
    fn number(self) -> u32 {
        match self {
            Link::Ethernet | Link::Vlan | Link::QinQ => 1,
            Link::Cooked => 113,
            Link::Cooked2 => 276,
            Link::Raw => 101,
            Link::Loopback => 0,
        }
    }

    fn frame(self, ip: &[u8]) -> Vec<u8> {
        let is_v6 = ip[0] >> 4 == 6;
        let kind: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
        let mut frame = match self {
            Link::Ethernet => [[2; 12].as_slice(), &kind].concat(),
            Link::Vlan => [[2; 12].as_slice(), &[0x81, 0, 0, 7], &kind].concat(),
            Link::QinQ => [[2; 12].as_slice(), &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9], &kind].concat(),
            Link::Cooked => [[0; 14].as_slice(), &kind].concat(),
            Link::Cooked2 => [&kind, [0; 18].as_slice()].concat(),
            Link::Raw => Vec::new(),
            Link::Loopback => vec![if is_v6 { 30 } else { 2 }, 0, 0, 0],
        };
        frame.extend_from_slice(ip);
        frame
    }
}

/// A segment of the connection, or a datagram.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at_ns: u64,
    pub from_client: bool,
    /// The place of the first byte, and the byte that is expected of the other side.
    pub place: u32,
    pub expects: u32,
    pub bytes: Vec<u8>,
    pub flags: u8,
    pub udp: bool,
}

pub const SYN: u8 = 2;
pub const ACK: u8 = 16;

impl Sent {
    pub fn tcp(at_ns: u64, from_client: bool, place: u32, expects: u32, bytes: &[u8]) -> Sent {
        Sent { at_ns, from_client, place, expects, bytes: bytes.to_vec(), flags: ACK, udp: false }
    }

    fn ip(&self, v6: bool) -> Vec<u8> {
        let ports = if self.from_client { [CLIENT, SERVER] } else { [SERVER, CLIENT] };
        let mut body: Vec<u8> = ports.iter().flat_map(|port| port.to_be_bytes()).collect();
        if self.udp {
            body.extend_from_slice(&(self.bytes.len() as u16 + 8).to_be_bytes());
            body.extend_from_slice(&[0, 0]);
        } else {
            let [own, other] = if self.from_client { FIRST } else { [FIRST[1], FIRST[0]] };
            // The segment that begins has the number before the first byte.
            let begins = u32::from(self.flags & SYN != 0);
            body.extend_from_slice(
                &own.wrapping_add(self.place).wrapping_sub(begins).to_be_bytes(),
            );
            body.extend_from_slice(&other.wrapping_add(self.expects).to_be_bytes());
            body.extend_from_slice(&[0x50, self.flags, 1, 0, 0, 0, 0, 0]);
        }
        body.extend_from_slice(&self.bytes);
        let hosts = if self.from_client { [1, 2] } else { [2, 1] };
        let protocol = if self.udp { 17 } else { 6 };
        let mut ip = if v6 {
            let mut ip = vec![0x60, 0, 0, 0];
            ip.extend_from_slice(&(body.len() as u16).to_be_bytes());
            ip.extend_from_slice(&[protocol, 64]);
            hosts.iter().for_each(|host| ip.extend_from_slice(&[*host; 16]));
            ip
        } else {
            let mut ip = vec![0x45, 0];
            ip.extend_from_slice(&(body.len() as u16 + 20).to_be_bytes());
            ip.extend_from_slice(&[0, 0, 0, 0, 64, protocol, 0, 0]);
            hosts.iter().for_each(|host| ip.extend_from_slice(&[10, 0, 0, *host]));
            ip
        };
        ip.extend_from_slice(&body);
        ip
    }
}

/// A capture file, in which packets have at most `snaplen` bytes.
pub fn capture(file: File, link: Link, v6: bool, snaplen: usize, sent: &[Sent]) -> Vec<u8> {
    let big_endian = match file {
        File::Pcap { big_endian, .. } | File::Pcapng { big_endian } => big_endian,
    };
    let long = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let short = |n: u16| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let length = long(body.len() as u32 + 12);
        [&long(kind), &length, body, &length].concat()
    };
    let mut bytes = match file {
        File::Pcap { ns, .. } => {
            let magic = long(if ns { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
            let version = [short(2), short(4)].concat();
            [&magic, &*version, &[0; 8], &long(snaplen as u32), &long(link.number())].concat()
        }
        File::Pcapng { .. } => {
            let version = [short(1), short(0)].concat();
            let section = [&long(0x1a2b_3c4d), &*version, &[0xff; 8]].concat();
            let resolution = [&short(9)[..], &short(1), &[9, 0, 0, 0], &[0; 4]].concat();
            let head = [short(link.number() as u16), short(0)].concat();
            let interface = [&*head, &long(snaplen as u32), &resolution].concat();
            [block(0x0a0d_0d0a, &section), block(1, &interface)].concat()
        }
    };
    for sent in sent {
        let frame = link.frame(&sent.ip(v6));
        let data = &frame[..frame.len().min(snaplen)];
        let lengths = [long(data.len() as u32), long(frame.len() as u32)].concat();
        match file {
            File::Pcap { ns, .. } => {
                let part = sent.at_ns % 1_000_000_000 / if ns { 1 } else { 1000 };
                let time = [long((sent.at_ns / 1_000_000_000) as u32), long(part as u32)].concat();
                bytes.extend_from_slice(&[&*time, &lengths, data].concat());
            }
            File::Pcapng { .. } => {
                let time = [long((sent.at_ns >> 32) as u32), long(sent.at_ns as u32)].concat();
                let padding = vec![0; data.len().next_multiple_of(4) - data.len()];
                let body = [&long(0), &*time, &lengths, data, &padding].concat();
                bytes.extend_from_slice(&block(6, &body));
            }
        }
    }
    bytes
}

/// The operations of a capture, each as a line, and what is said besides.
pub fn read(capture: &[u8]) -> Result<(Vec<String>, Summary), String> {
    let mut reader = Capture::open(Cursor::new(capture), Ports::default(), Limits::default())?;
    let (mut lines, mut last_ns) = (Vec::new(), 0);
    while let Some(record) = reader.next()? {
        let at_ns = record.at_ns.expect("packets have times");
        assert!(at_ns >= last_ns, "in the order of times");
        assert!((1..=250).contains(&record.key.len()), "{record:?}");
        last_ns = at_ns;
        let outcome = match record.succeeded {
            None => "",
            Some(true) => " ok",
            Some(false) => " no",
        };
        lines.push(format!(
            "{} {}{}{}{outcome}{}",
            record.operation,
            String::from_utf8_lossy(record.key),
            record.length.map_or(String::new(), |length| format!(" {length} bytes")),
            if record.ttl_s > 0 { format!(" for {} s", record.ttl_s) } else { String::new() },
            if record.joined { " joined" } else { "" },
        ));
    }
    Ok((lines, reader.ending().1))
}

/// The segments that begin a connection.
pub fn handshake() -> [Sent; 2] {
    let [mut syn, mut answer] = [true, false].map(|client| Sent::tcp(0, client, 0, 0, b""));
    (syn.flags, answer.flags) = (SYN, SYN | ACK);
    [syn, answer]
}

const PLAIN: File = File::Pcap { big_endian: false, ns: false };

/// A connection whose client sends these bytes, in segments that end at these places.
pub fn asked(bytes: &[u8], cuts: &[usize]) -> Vec<Sent> {
    let mut sent = handshake().to_vec();
    let mut begin = 0;
    for (number, cut) in cuts.iter().chain([&usize::MAX]).enumerate() {
        let end = begin + bytes.len().saturating_sub(begin).min(*cut).min(60_000);
        let part = &bytes[begin..end];
        sent.push(Sent::tcp(1000 * (number as u64 + 1), true, begin as u32, 0, part));
        begin = end;
    }
    sent
}

/// Turns of a client and of its server, each in one segment.
pub fn turns(turns: &[(&[u8], &[u8])]) -> Vec<Sent> {
    let mut sent = handshake().to_vec();
    let mut places = [0_u32; 2];
    for (request, reply) in turns {
        for (side, bytes) in [request, reply].into_iter().enumerate() {
            let at_ns = 1000 * sent.len() as u64;
            sent.push(Sent::tcp(at_ns, side == 0, places[side], places[1 - side], bytes));
            places[side] += bytes.len() as u32;
        }
    }
    sent
}

/// The first byte says how many of the others are lengths of segments, the next one which of them come late and twice;
/// the rest is what a client sends. What is read of it is the same if it comes as one segment.
pub fn segments_do_not_matter(bytes: &[u8]) {
    let [count, disorder, rest @ ..] = bytes else { return };
    let (lengths, request) = rest.split_at(usize::from(*count % 16).min(rest.len()));
    let whole = capture(PLAIN, Link::Ethernet, false, 70_000, &asked(request, &[]));
    let (expected, summary) = read(&whole).expect("a capture");
    if !summary.left_out.is_empty() {
        return;
    }
    let cuts: Vec<usize> = lengths.iter().map(|length| usize::from(*length)).collect();
    let mut sent = asked(request, &cuts);
    for at in 2..sent.len() - 1 {
        match disorder >> (at % 7) & 3 {
            1 => sent.swap(at, at + 1),
            2 => sent.insert(at + 1, sent[at].clone()),
            _ => {}
        }
    }
    let (found, summary) =
        read(&capture(PLAIN, Link::Ethernet, false, 70_000, &sent)).expect("a capture");
    let names = |lines: &[String]| {
        let mut names = lines.to_vec();
        names.sort();
        names
    };
    assert_eq!((names(&found), summary.left_out), (names(&expected), Default::default()));
}

/// A capture file is refused with one sentence, or read.
pub fn refused_or_read(bytes: &[u8]) {
    if let Err(refused) = read(bytes) {
        assert!(refused.starts_with("it ") || refused.starts_with("packet "), "{refused}");
        assert!(!refused.contains('\n'), "one sentence: {refused:?}");
    }
}

/// Both directions of a connection, in pieces that alternate: each is one byte with the direction and the length, then
/// the bytes. Nothing fails, whatever they are.
pub fn conversation_is_read(bytes: &[u8]) {
    let (mut sent, mut rest) = (handshake().to_vec(), bytes);
    let mut places = [0_u32; 2];
    while let [head, after @ ..] = rest {
        let (part, behind) = after.split_at(usize::from(head >> 1).min(after.len()));
        let side = usize::from(head & 1);
        let at_ns = 1000 * sent.len() as u64;
        sent.push(Sent::tcp(at_ns, side == 0, places[side], places[1 - side], part));
        places[side] += part.len() as u32;
        rest = behind;
    }
    for (snaplen, from) in [(70_000, 0), (90, 0), (70_000, 3)] {
        let part = &sent[from.min(sent.len())..];
        read(&capture(PLAIN, Link::Ethernet, false, snaplen, part)).expect("a capture");
    }
}
