//! The cases of conformance/server as bytes: requests and expected replies.

use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::DeserializeOwned;

const OPCODES: [(&str, u8); 32] = [
    ("get", 0x00),
    ("set", 0x01),
    ("add", 0x02),
    ("replace", 0x03),
    ("delete", 0x04),
    ("incr", 0x05),
    ("decr", 0x06),
    ("quit", 0x07),
    ("flush", 0x08),
    ("getq", 0x09),
    ("noop", 0x0a),
    ("version", 0x0b),
    ("getk", 0x0c),
    ("getkq", 0x0d),
    ("append", 0x0e),
    ("prepend", 0x0f),
    ("stat", 0x10),
    ("setq", 0x11),
    ("addq", 0x12),
    ("replaceq", 0x13),
    ("deleteq", 0x14),
    ("incrq", 0x15),
    ("decrq", 0x16),
    ("quitq", 0x17),
    ("flushq", 0x18),
    ("appendq", 0x19),
    ("prependq", 0x1a),
    ("touch", 0x1c),
    ("gat", 0x1d),
    ("gatq", 0x1e),
    ("gatk", 0x23),
    ("gatkq", 0x24),
];

/// A table of conformance/server.
pub fn table<T: DeserializeOwned>(name: &str) -> T {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../conformance/server");
    let text = std::fs::read_to_string(folder.join(name)).expect("the table of cases");
    toml::from_str(&text).expect("a table of cases")
}

/// A case of text.toml, meta.toml or auth.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextCase {
    pub name: String,
    pub request: String,
    /// The reply of the embedded server, and of memcached unless its version is named below.
    pub reply: String,
    /// The replies of memcached before these versions.
    #[serde(default)]
    reply_before: BTreeMap<Version, String>,
    /// The replies of memcached since these versions.
    #[serde(default)]
    reply_since: BTreeMap<Version, String>,
    #[serde(default)]
    pub closed: bool,
}

impl TextCase {
    /// The reply of this version of memcached.
    pub fn reply_of(&self, version: Version) -> &str {
        let before = self.reply_before.iter().find(|(bound, _)| version < **bound);
        let since = self.reply_since.iter().rev().find(|(bound, _)| version >= **bound);
        before.or(since).map_or(&self.reply, |(_, reply)| reply)
    }
}

/// A version of memcached, such as 1.6.45.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Version([u32; 3]);

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Version, String> {
        text.parse()
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Version, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|number| number.parse().ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        numbers.map(Version).ok_or_else(|| format!("{text} is no version"))
    }
}

#[derive(Deserialize)]
struct TextTable {
    case: Vec<TextCase>,
}

/// The cases of such a table.
pub fn text(name: &str) -> Vec<TextCase> {
    table::<TextTable>(name).case
}

/// A case of binary.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BinaryCase {
    pub name: String,
    #[serde(default)]
    send: Vec<Request>,
    #[serde(default)]
    raw: String,
    reply: Vec<Reply>,
    #[serde(default)]
    pub closed: bool,
}

#[derive(Deserialize)]
struct BinaryTable {
    case: Vec<BinaryCase>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Request {
    op: String,
    key: String,
    extras: String,
    value: String,
    cas: u64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Reply {
    op: String,
    status: u16,
    key: String,
    extras: String,
    value: String,
    value_hex: String,
    cas: bool,
}

/// The cases of binary.toml.
pub fn binary() -> Vec<BinaryCase> {
    table::<BinaryTable>("binary.toml").case
}

impl BinaryCase {
    /// The bytes to send.
    pub fn request(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, sent) in self.send.iter().enumerate() {
            let (extras, key, value) = (hex(&sent.extras), expand(&sent.key), expand(&sent.value));
            let parts = [&extras[..], &key[..], &value[..]];
            out.extend(packet(0x80, opcode(&sent.op), 0, index as u32, sent.cas, parts));
        }
        out.extend(hex(&self.raw));
        out
    }

    /// The expected replies. The opaque number of each is that of the next request with its opcode.
    pub fn expected(&self, version: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let mut next = 0;
        for reply in &self.reply {
            let found = self.send.iter().skip(next).position(|sent| sent.op == reply.op);
            let opaque = found.map_or(0, |after| next + after);
            next = opaque + 1;
            let (extras, key) = (hex(&reply.extras), expand(&reply.key));
            let mut value = expand(&reply.value.replace("<version>", version));
            value.extend(hex(&reply.value_hex));
            let parts = [&extras[..], &key[..], &value[..]];
            let (op, cas) = (opcode(&reply.op), u64::from(reply.cas));
            out.extend(packet(0x81, op, reply.status, opaque as u32, cas, parts));
        }
        out
    }
}

fn opcode(name: &str) -> u8 {
    if let Some(hex) = name.strip_prefix("0x") {
        return u8::from_str_radix(hex, 16).expect("an opcode");
    }
    OPCODES.iter().find(|(known, _)| *known == name).expect("a known opcode").1
}

fn hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// A packet of extras, key and value. `status` is the status of a reply and the vbucket of a request.
pub fn packet(magic: u8, op: u8, status: u16, opaque: u32, cas: u64, parts: [&[u8]; 3]) -> Vec<u8> {
    let [extras, key, value] = parts;
    let body = extras.len() + key.len() + value.len();
    let mut out = vec![magic, op];
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0]);
    out.extend_from_slice(&status.to_be_bytes());
    out.extend_from_slice(&(body as u32).to_be_bytes());
    out.extend_from_slice(&opaque.to_be_bytes());
    out.extend_from_slice(&cas.to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// `{k250}` is a key of 250 bytes, `{x9}` nine bytes, `{keys30}` thirty keys.
pub fn expand(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = open + rest[open..].find('}').expect("a closing brace");
        out.extend_from_slice(&rest.as_bytes()[..open]);
        let field = &rest[open + 1..close];
        let digits = field.find(|c: char| c.is_ascii_digit()).expect("a number");
        let count: usize = field[digits..].parse().expect("a number");
        match &field[..digits] {
            "k" => out.extend(std::iter::repeat_n(b'k', count)),
            "x" => out.extend(std::iter::repeat_n(b'x', count)),
            "keys" => {
                let keys: Vec<String> = (0..count).map(|n| format!("q{n}")).collect();
                out.extend_from_slice(keys.join(" ").as_bytes());
            }
            other => panic!("{other}?"),
        }
        rest = &rest[close + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}
