//! Random sequences of requests, played to the embedded server in all I/O modes and to the real memcached: the replies
//! to each request must be equal. `PROPTEST_CASES=5000` plays more sequences, `PROPTEST_RNG_SEED=7` the same ones.

mod draws;

use std::cell::Cell;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use cachemark_properties::cases::{Version, packet};
use cachemark_protocol::binary::client as binary_client;
use cachemark_protocol::meta::request::encode_key;
use cachemark_server::IoMode;
use draws::{Ask, KEYS, Part, SILENT, binary, meta, text};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::targets::{Target, embedded, memcached_with};

/// Sent behind each request: its reply marks the end of the replies to the request.
const TEXT_FENCE: (&[u8], &[u8]) = (b"mn\r\n", b"MN\r\n");
const NOOP: u8 = 0x0a;
const FENCE_OPAQUE: u32 = 0xfefe_fefe;

/// The connection to one of the two servers.
struct Side {
    stream: TcpStream,
    /// The prefix of all keys, so that sequences do not affect each other.
    prefix: String,
    /// The cas numbers in the order of their first appearance: servers count in different steps.
    numbers: Vec<u64>,
    /// The last cas number of each key.
    last: HashMap<usize, u64>,
    binary: bool,
}

impl Side {
    fn new(target: &Target, session: u64, binary: bool) -> Side {
        // No dash in stored values: after a large number memcached searches for one beyond the value.
        let prefix = format!("s{session}.");
        let stream = target.connect();
        Side { stream, prefix, numbers: Vec::new(), last: HashMap::new(), binary }
    }

    fn name(&self, key: usize) -> Vec<u8> {
        let mut name = format!("{}{key}", self.prefix).into_bytes();
        // The longest valid key.
        name.resize(if key == KEYS - 1 { 250 } else { name.len() }, b'k');
        name
    }

    fn bytes(&self, ask: &Ask) -> Vec<u8> {
        let mut out = Vec::new();
        for part in &ask.parts {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Key(key) => out.extend(self.name(*key)),
                Part::Base64(key) => encode_key(&self.name(*key), &mut out),
                Part::Unique(key) => out.extend(self.unique(*key).to_string().into_bytes()),
            }
        }
        if let Some(sent) = &ask.packet {
            let key = sent.key.map_or(Vec::new(), |key| self.name(key));
            let cas = sent.unique_of.map_or(0, |key| self.unique(key));
            let parts = [&sent.extras[..], &key[..], &sent.value[..]];
            out.extend(packet(0x80, sent.opcode, 0, sent.opaque, cas, parts));
        }
        out
    }

    /// A cas number that the item has or had, or another if none is known.
    fn unique(&self, key: usize) -> u64 {
        self.last.get(&key).copied().unwrap_or(u64::MAX - 7)
    }

    /// Send a request and return the replies up to the fence, in a form in which the servers can be compared.
    fn exchange(&mut self, ask: &Ask) -> String {
        let mut request = self.bytes(ask);
        let fence = match self.binary {
            true => packet(0x81, NOOP, 0, FENCE_OPAQUE, 0, [b"", b"", b""]),
            false => TEXT_FENCE.1.to_vec(),
        };
        match self.binary {
            true => request.extend(packet(0x80, NOOP, 0, FENCE_OPAQUE, 0, [b"", b"", b""])),
            false => request.extend_from_slice(TEXT_FENCE.0),
        }
        self.stream.write_all(&request).expect("a server that reads");
        let (mut said, mut room) = (Vec::new(), [0; 65_536]);
        while !said.ends_with(&fence) {
            let bytes = match self.stream.read(&mut room) {
                // A stopped process that goes on.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.expect("a server that answers"),
            };
            if bytes == 0 {
                return format!("{}, and the end", shown(&said));
            }
            said.extend_from_slice(&room[..bytes]);
        }
        said.truncate(said.len() - fence.len());
        let settled = match self.binary {
            true => self.settled_packets(&said, ask),
            false => self.settled_lines(&said, ask),
        };
        shown(&settled)
    }

    /// Whether memcached took a number from 2⁶³ on for text. It searches for a dash beyond such a number, and may find
    /// one in the header of another item.
    fn took_number_for_text(&self, memcached: &Target, ask: &Ask, replied: &str) -> bool {
        let is_silent = shown(&self.bytes(ask)).contains(&SILENT.escape_debug().to_string());
        let refused = |_: &usize| is_silent || replied.contains("on-numeric");
        let Some(key) = ask.key.filter(refused) else { return false };
        let request = [b"get ", &self.name(key)[..], b"\r\n"].concat();
        let reply = memcached.exchange(&request, usize::MAX, false);
        let value = reply.split(|byte| *byte == b'\n').nth(1).map(<[u8]>::trim_ascii);
        let number = value.and_then(|value| str::from_utf8(value).ok()?.parse::<u64>().ok());
        number.is_some_and(|number| number >= 1 << 63)
    }

    /// The position of a cas number in the order of appearance.
    fn place(&mut self, number: u64, key: Option<usize>) -> u64 {
        if let Some(key) = key {
            self.last.insert(key, number);
        }
        let place = self.numbers.iter().position(|known| *known == number);
        place.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        }) as u64
    }

    fn settled_packets(&mut self, said: &[u8], ask: &Ask) -> Vec<u8> {
        let (mut out, mut rest) = (said.to_vec(), said);
        let key = ask.key;
        while let Ok(Some((_, length))) = binary_client::parse(rest) {
            let at = said.len() - rest.len() + 16;
            let cas = u64::from_be_bytes(said[at..at + 8].try_into().expect("eight bytes"));
            if cas != 0 {
                let place = self.place(cas, key) + 1;
                out[at..at + 8].copy_from_slice(&place.to_be_bytes());
            }
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "no whole packets: {}", shown(said));
        out
    }

    fn settled_lines(&mut self, said: &[u8], ask: &Ask) -> Vec<u8> {
        let lines = said.split_inclusive(|byte| *byte == b'\n');
        lines.flat_map(|line| self.settled_line(line, ask)).collect()
    }

    /// Round times, because a second may pass between the servers, and replace cas numbers by their positions.
    fn settled_line(&mut self, line: &[u8], ask: &Ask) -> Vec<u8> {
        let text = String::from_utf8_lossy(line).into_owned();
        let words: Vec<&str> = text.split(' ').collect();
        let settled: Vec<String> = match words[0] {
            "VALUE" if words.len() == 5 => {
                let key = (0..KEYS).find(|key| self.name(*key) == words[1].as_bytes());
                let number = words[4].trim_end().parse().expect("a unique number");
                let place = format!("cas {}\r\n", self.place(number, key));
                words[..4].iter().map(|word| (*word).to_owned()).chain([place]).collect()
            }
            // If memcached creates an item or appends to it, it forgets that the key was in base64.
            "HD" | "VA" => {
                let text = text.replace(" b\r\n", "\r\n").replace(" b ", " ");
                text.split(' ').map(|word| self.settled_flag(word, ask)).collect()
            }
            "ME" => words.iter().map(|word| self.settled_field(word, ask)).collect(),
            _ => return line.to_vec(),
        };
        settled.join(" ").into_bytes()
    }

    fn settled_flag(&mut self, word: &str, ask: &Ask) -> String {
        let end = if word.ends_with("\r\n") { "\r\n" } else { "" };
        let number = |letter| word.trim_end().strip_prefix(letter)?.parse::<u64>().ok();
        if word.starts_with('k') {
            return format!("{}{end}", self.settled_name(&word.trim_end()[1..]));
        }
        if let Some(number) = number('c') {
            return format!("c{}{end}", self.place(number, ask.key));
        }
        match (number('t'), number('l')) {
            // memcached's number for an expired item has wrapped.
            (Some(left), _) if left > u64::from(u32::MAX / 2) => format!("t0{end}"),
            (Some(left), _) => format!("t{}{end}", left.div_ceil(100) * 100),
            (_, Some(ago)) => format!("l{}{end}", ago / 100),
            _ => word.to_owned(),
        }
    }

    fn settled_name(&self, name_or_base64: &str) -> String {
        let is = |key: &usize| {
            let (name, mut encoded) = (self.name(*key), Vec::new());
            encode_key(&name[..name.len().min(180)], &mut encoded);
            name_or_base64.as_bytes() == name || name_or_base64.as_bytes() == encoded
        };
        (0..KEYS).find(is).map_or(name_or_base64.to_owned(), |key| format!("<key {key}>"))
    }

    fn settled_field(&mut self, word: &str, ask: &Ask) -> String {
        let number = |name| word.strip_prefix(name)?.parse::<i64>().ok();
        if let Some(number) = number("cas=") {
            return format!("cas={}", self.place(number as u64, ask.key));
        }
        match (number("exp="), number("la=")) {
            // Before 1.6.24 the number was negative while time was left.
            (Some(left), _) if left != -1 => {
                format!("exp={}", left.unsigned_abs().div_ceil(100) * 100)
            }
            (_, Some(ago)) => format!("la={}", ago / 100),
            _ if ["fetch=", "cls=", "size="].iter().any(|name| word.starts_with(name)) => {
                word.to_owned()
            }
            _ => self.settled_name(word),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    let end = bytes.len().min(400);
    format!("{} of {} bytes", bytes[..end].escape_ascii(), bytes.len())
}

/// Play sequences of these requests to both servers.
fn both_say_the_same(asks: impl Fn(Version) -> BoxedStrategy<Ask>, binary: bool) {
    // memcached's LRU maintainer holds items for a moment; `incr` then does not pad the number.
    let (_memcached, judge) = memcached_with(&["-o", "no_lru_maintainer,no_lru_crawler"]);
    let (_servers, ours): (Vec<_>, Vec<_>) = IoMode::available().map(embedded).unzip();
    let modes: Vec<IoMode> = IoMode::available().collect();
    let sessions = Cell::new(0);
    let config = Config { failure_persistence: None, cases: cases(), ..Config::default() };
    let version = judge.memcached.expect("memcached's version");
    let drawn = (0..modes.len(), proptest::collection::vec(asks(version), 1..60));
    let ran = TestRunner::new(config).run(&drawn, |(mode, asks)| {
        sessions.set(sessions.get() + 1);
        let [mut expected, mut actual] =
            [&judge, &ours[mode]].map(|target| Side::new(target, sessions.get(), binary));
        for ask in &asks {
            let (said, judged) = (actual.exchange(ask), expected.exchange(ask));
            if said != judged && expected.took_number_for_text(&judge, ask, &judged) {
                return Ok(());
            }
            prop_assert_eq!(said, judged, "{:?} {}", modes[mode], shown(&expected.bytes(ask)));
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("ours is on the left\n{error}"));
}

/// The number of sequences: small by default, or PROPTEST_CASES.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(128)
}

#[test]
fn text_replies_are_those_of_memcached() {
    both_say_the_same(text, false);
}

#[test]
fn meta_replies_are_those_of_memcached() {
    both_say_the_same(meta, false);
}

#[test]
fn binary_replies_are_those_of_memcached() {
    both_say_the_same(binary, true);
}
