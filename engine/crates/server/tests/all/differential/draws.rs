//! Random requests, similar to clients' requests: with few keys, so that requests affect each other, and with all
//! flags.

use std::fmt;

use cachemark_properties::cases::Version;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

pub const KEYS: usize = 5;
/// The end of a change without a reply, and the begin of the get behind it.
pub const SILENT: &str = " noreply\r\nget ";

/// A part of a request that is known only when it is sent.
#[derive(Clone)]
pub enum Part {
    Bytes(Vec<u8>),
    Key(usize),
    Base64(usize),
    /// A cas number that a reply had for this key.
    Unique(usize),
}

#[derive(Clone)]
pub struct Packet {
    pub opcode: u8,
    pub key: Option<usize>,
    pub extras: Vec<u8>,
    pub value: Vec<u8>,
    pub opaque: u32,
    pub unique_of: Option<usize>,
}

/// A request: the words of a line, possibly with data, or a packet.
#[derive(Clone)]
pub struct Ask {
    pub parts: Vec<Part>,
    pub packet: Option<Packet>,
    /// Its key.
    pub key: Option<usize>,
}

impl fmt::Debug for Ask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            Part::Bytes(bytes) => write!(out, "{}", bytes.escape_ascii()),
            Part::Key(key) => write!(out, "<key {key}>"),
            Part::Base64(key) => write!(out, "<key {key} in base64>"),
            Part::Unique(key) => write!(out, "<cas of key {key}>"),
        })?;
        let Some(Packet { opcode, key, extras, value, unique_of, .. }) = &self.packet else {
            return Ok(());
        };
        write!(out, "{opcode:#04x} key {key:?} cas of {unique_of:?} extras {extras:02x?} ")?;
        write!(out, "value {}", value.escape_ascii())
    }
}

fn line(parts: Vec<Part>, key: Option<usize>) -> Ask {
    Ask { parts, packet: None, key }
}

fn word(text: &str) -> Part {
    Part::Bytes(text.as_bytes().to_vec())
}

/// A line of fixed words.
fn plain(text: &str) -> Ask {
    line(vec![word(text), word("\r\n")], None)
}

fn key() -> impl Strategy<Value = usize> {
    0..KEYS
}

/// A number, text, nothing, or a long value; never the fence.
fn value() -> BoxedStrategy<Vec<u8>> {
    const NUMBERS: [&str; 11] =
        ["0", "9", "10", "99", "007", " 5", "5 ", "+1", "18446744073709551615", "1x", ""];
    prop_oneof![
        4 => select(&NUMBERS[..]).prop_map(|text| text.as_bytes().to_vec()),
        2 => any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        // If a value consists of blanks, memcached parses the memory behind it as a number.
        3 => vec(select(&b"ab \r\n\0"[..]), 0..40)
            .prop_filter("blanks", |value| value.iter().any(|byte| !byte.is_ascii_whitespace())),
        1 => (0_usize..9000).prop_map(|length| vec![b'l'; length]),
    ]
    .boxed()
}

/// No expiry, a distant one, or one that has passed, so that a second more does not matter. No instant in the
/// near future, because memcached's clock ticks at other moments.
fn exptime() -> impl Strategy<Value = i64> {
    select(&[0_i64, 0, 0, 1000, 100_000, 2_592_000, -1, 2_592_001, -100][..])
}

fn flags() -> impl Strategy<Value = u32> {
    prop_oneof![3 => Just(0), 1 => any::<u32>()]
}

fn noreply() -> impl Strategy<Value = &'static str> {
    select(&["", "", "", " noreply"][..])
}

pub fn text(version: Version) -> BoxedStrategy<Ask> {
    const DELTAS: [&str; 7] =
        ["1", "0", "5", "18446744073709551615", "x", "-1", "99999999999999999999"];
    let verbs = select(&["set", "set", "add", "replace", "append", "prepend"][..]);
    let store = (verbs, key(), flags(), exptime(), value(), noreply()).prop_map(
        |(verb, key, flags, exptime, value, noreply)| {
            let rest = format!(" {flags} {exptime} {}{noreply}\r\n", value.len());
            let verb = word(&format!("{verb} "));
            let data = [&value[..], b"\r\n"].concat();
            line(vec![verb, Part::Key(key), word(&rest), Part::Bytes(data)], Some(key))
        },
    );
    let cas = (key(), key(), exptime(), value(), noreply()).prop_map(
        |(key, other, exptime, value, noreply)| {
            let middle = format!(" 3 {exptime} {} ", value.len());
            // Mostly the item's own number.
            let of = if other == 0 { other } else { key };
            let data = [noreply.as_bytes(), b"\r\n", &value[..], b"\r\n"].concat();
            let number = Part::Unique(of);
            let parts =
                vec![word("cas "), Part::Key(key), word(&middle), number, Part::Bytes(data)];
            line(parts, Some(key))
        },
    );
    let get = (select(&["get", "gets", "gets"][..]), vec(key(), 1..5)).prop_map(|(verb, keys)| {
        let named = keys.into_iter().flat_map(|key| [word(" "), Part::Key(key)]);
        line([word(verb)].into_iter().chain(named).chain([word("\r\n")]).collect(), None)
    });
    let gat = (select(&["gat", "gats"][..]), exptime(), vec(key(), 1..4)).prop_map(
        |(verb, exptime, keys)| {
            let named = keys.into_iter().flat_map(|key| [word(" "), Part::Key(key)]);
            let verb = word(&format!("{verb} {exptime}"));
            line([verb].into_iter().chain(named).chain([word("\r\n")]).collect(), None)
        },
    );
    let arithmetic = (select(&["incr", "decr"][..]), key(), select(&DELTAS[..]), noreply())
        .prop_map(|(verb, key, delta, noreply)| match noreply {
            "" => one(verb, key, &format!(" {delta}")),
            _ => silent(verb, key, delta),
        });
    let delete = (key(), select(&["", " 0", " noreply", " 0 noreply"][..]))
        .prop_map(|(key, rest)| one("delete", key, rest));
    let touch = (key(), exptime(), noreply())
        .prop_map(|(key, exptime, noreply)| one("touch", key, &format!(" {exptime}{noreply}")));
    let others = [
        "flush_all 3000",
        "verbosity 1",
        "verbosity 1 noreply",
        "nonsense",
        "set a 0 0 x",
        "lru_crawler metadump",
    ];
    prop_oneof![
        6 => store,
        3 => cas,
        5 => get,
        2 => gat,
        3 => arithmetic,
        1 => delete,
        2 => touch,
        1 => select(others.to_vec()).prop_map(plain),
        2 => meta(version),
    ]
    .boxed()
}

fn one(verb: &str, key: usize, rest: &str) -> Ask {
    let rest = word(&format!("{rest}\r\n"));
    line(vec![word(&format!("{verb} ")), Part::Key(key), rest], Some(key))
}

/// Behind a change without a reply comes a get, which tells at once whether the number has changed.
fn silent(verb: &str, key: usize, delta: &str) -> Ask {
    let (verb, get) = (word(&format!("{verb} ")), word(&format!(" {delta}{SILENT}")));
    line(vec![verb, Part::Key(key), get, Part::Key(key), word("\r\n")], Some(key))
}

/// How the token of a flag is drawn.
#[derive(Clone, Debug)]
enum Flag {
    Told(String),
    /// A cas number that the key had.
    Compared,
}

fn flag(letter: char) -> BoxedStrategy<Flag> {
    let times = || exptime().prop_map(|exptime| exptime.to_string());
    let numbers = || select(&["0", "1", "5", "18446744073709551615"][..]).prop_map(str::to_owned);
    let token: BoxedStrategy<String> = match letter {
        // Far from the exptimes, because a second may pass. All expired items are alike.
        'R' => select(&["0", "500", "50000", "1000000"][..]).prop_map(str::to_owned).boxed(),
        'N' | 'T' => times().boxed(),
        'F' => flags().prop_map(|flags| flags.to_string()).boxed(),
        'D' | 'J' => numbers().boxed(),
        'O' => "[!-~]{0,31}".boxed(),
        'M' => select(&["E", "A", "P", "R", "S", "I", "D", "+", "-", "e", "a", "i", "d"][..])
            .prop_map(str::to_owned)
            .boxed(),
        'C' => {
            return prop_oneof![3 => Just(Flag::Compared), 1 => Just(Flag::Told("C0".to_owned()))]
                .boxed();
        }
        // Above all assigned numbers, because such a number may be assigned again.
        'E' => (1_u64 << 40..1 << 50).prop_map(|number| number.to_string()).boxed(),
        _ => Just(String::new()).boxed(),
    };
    token.prop_map(move |token| Flag::Told(format!("{letter}{token}"))).boxed()
}

/// Some of these flags, in any order, each at most once.
fn some_flags(letters: Vec<char>) -> BoxedStrategy<Vec<Flag>> {
    let most = letters.len().min(8);
    let some = subsequence(letters, 0..=most).prop_shuffle();
    some.prop_flat_map(|letters| letters.into_iter().map(flag).collect::<Vec<_>>()).boxed()
}

/// The verbs, their flags in 1.6.18, and those that memcached has since 1.6.27. Not drawn: `T` and `E` of `ma`,
/// because a number that becomes longer loses their effect in memcached.
const VERBS: [(&str, &str, &str); 4] = [
    ("mg", "svfcthlkqOuNRT", "E"),
    ("ms", "FTckOqICM", "sNE"),
    ("md", "qkOCIT", "xE"),
    ("ma", "NJDMtcvCkO", ""),
];

/// Since this version, a quiet `ma` that creates an item is silent, and `me` does not find keys in base64, as here.
fn is_new_parser(version: Version) -> bool {
    version >= "1.6.40".parse().expect("a version")
}

pub fn meta(version: Version) -> BoxedStrategy<Ask> {
    let verb = move |(verb, old, new): (&'static str, &str, &str)| {
        let new = if version < "1.6.27".parse().expect("a version") { "" } else { new };
        let quiet = if verb == "ma" && is_new_parser(version) { "q" } else { "" };
        let letters: Vec<char> = [old, new, quiet].concat().chars().collect();
        (key(), any::<bool>(), some_flags(letters), value())
            .prop_map(move |(key, base64, flags, value)| meta_ask(verb, key, base64, flags, value))
    };
    let [get, set, delete, arithmetic] = VERBS.map(verb);
    let debug = (key(), any::<bool>()).prop_map(move |(key, base64)| {
        meta_ask("me", key, base64 && is_new_parser(version), Vec::new(), Vec::new())
    });
    prop_oneof![5 => get, 5 => set, 1 => delete, 3 => arithmetic, 1 => debug].boxed()
}

fn meta_ask(verb: &str, key: usize, base64: bool, flags: Vec<Flag>, value: Vec<u8>) -> Ask {
    // The longest key is too long in base64.
    let base64 = base64 && key < KEYS - 1;
    let named = if base64 { Part::Base64(key) } else { Part::Key(key) };
    let mut parts = vec![word(&format!("{verb} ")), named];
    if verb == "ms" {
        parts.push(word(&format!(" {}", value.len())));
    }
    parts.extend(base64.then(|| word(" b")));
    for flag in flags {
        match flag {
            Flag::Told(text) => parts.push(word(&format!(" {text}"))),
            Flag::Compared => parts.extend([word(" C"), Part::Unique(key)]),
        }
    }
    parts.push(word("\r\n"));
    if verb == "ms" {
        parts.extend([Part::Bytes(value), word("\r\n")]);
    }
    line(parts, Some(key))
}

/// Opcodes, with quiet ones, and the lengths of their extras: flags and exptime; two numbers and an exptime; an
/// exptime.
const STORES: [u8; 6] = [0x01, 0x02, 0x03, 0x11, 0x12, 0x13];
const JOINS: [u8; 4] = [0x0e, 0x0f, 0x19, 0x1a];
const NUMBERS: [u8; 4] = [0x05, 0x06, 0x15, 0x16];
const TOUCHES: [u8; 5] = [0x1c, 0x1d, 0x1e, 0x23, 0x24];
const READS: [u8; 6] = [0x00, 0x09, 0x0c, 0x0d, 0x04, 0x14];
/// Opcodes without a key: noop, and unknown ones.
const OTHERS: [u8; 4] = [0x0a, 0x20, 0x30, 0x7f];

pub fn binary(_: Version) -> BoxedStrategy<Ask> {
    let seconds = || exptime().prop_map(|exptime| (exptime as u32).to_be_bytes().to_vec());
    let number = || {
        let far = select(&[0_u64, 1, 7, u64::MAX][..]);
        prop_oneof![3 => far, 1 => any::<u64>()].prop_map(|number| number.to_be_bytes().to_vec())
    };
    let never = Just(vec![0xff; 4]);
    let store = (flags(), seconds())
        .prop_map(|(flags, exptime)| [&flags.to_be_bytes()[..], &exptime].concat());
    let makes = (number(), number(), prop_oneof![1 => never, 2 => seconds()])
        .prop_map(|(delta, initial, exptime)| [delta, initial, exptime].concat());
    prop_oneof![
        6 => packet(&STORES, store, value()),
        2 => packet(&JOINS, Just(Vec::new()), value()),
        3 => packet(&NUMBERS, makes, Just(Vec::new())),
        2 => packet(&TOUCHES, seconds(), Just(Vec::new())),
        6 => packet(&READS, Just(Vec::new()), Just(Vec::new())),
        1 => packet(&OTHERS, Just(Vec::new()), Just(Vec::new())).prop_map(keyless),
    ]
    .boxed()
}

fn packet(
    opcodes: &'static [u8],
    extras: impl Strategy<Value = Vec<u8>>,
    value: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = Ask> {
    let unique = prop_oneof![3 => Just(false), 1 => Just(true)];
    (select(opcodes), key(), extras, value, any::<u32>(), unique).prop_map(
        |(opcode, key, extras, value, opaque, compared)| {
            let unique_of = compared.then_some(key);
            let packet = Packet { opcode, key: Some(key), extras, value, opaque, unique_of };
            Ask { parts: Vec::new(), packet: Some(packet), key: Some(key) }
        },
    )
}

fn keyless(mut ask: Ask) -> Ask {
    if let Some(packet) = &mut ask.packet {
        (packet.key, packet.unique_of) = (None, None);
    }
    ask
}
