//! One operation of a trace, in any format.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use cachemark_tape::Verb;

/// An operation on one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceEvent {
    /// The time in ns, on the clock of the trace.
    pub at_ns: Option<u64>,
    /// The number that memcached gave the line: lines with the same time may be in another order.
    pub number: u64,
    pub key: String,
    /// The original length of the key, if the trace abbreviates keys.
    pub key_bytes: Option<u32>,
    pub action: Action,
    /// The value size, if known. Misses have none.
    pub length: Option<u32>,
    pub exptime_s: u32,
    /// How often the operation is repeated.
    pub count: u32,
    /// The number of the connection.
    pub client: Option<u32>,
    /// A read that hit, or a write that was done.
    pub succeeded: Option<bool>,
    /// A further key of the request before.
    pub joined: bool,
}

pub(crate) const MAX_KEY_BYTES: usize = 250;

pub(crate) fn check_key(key: &str) -> Result<(), String> {
    // Without an early end the compiler compares many bytes at once.
    let clean = key.bytes().fold(true, |clean, byte| clean & (byte > b' ') & (byte != 0x7f));
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !clean {
        let shown: String = key.chars().take(40).collect();
        return Err(format!(
            "key {shown:?}: keys are 1 to 250 bytes without spaces or control characters"
        ));
    }
    Ok(())
}

/// A key as traces can hold it: a byte that is no plain text becomes `%` and two hex digits. If that is too long, its
/// end becomes a hash of all bytes.
pub(crate) fn text_key(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(key) = std::str::from_utf8(bytes)
        && check_key(key).is_ok()
    {
        return key.into();
    }
    let mut name = String::with_capacity(3 * bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && *byte != b'%' {
            name.push(char::from(*byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() > MAX_KEY_BYTES {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let end = format!("~{:016x}", hasher.finish());
        name.truncate(MAX_KEY_BYTES - end.len());
        name.push_str(&end);
    }
    name.into()
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Do(Verb),
    /// An operation that a tape cannot hold.
    Skip(String),
}

impl Action {
    /// The name of the operation, as traces have it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Action::Do(verb) => verb.name(),
            Action::Skip(name) => name,
        }
    }
}

/// The largest value size that is plausible: the default limit of servers is a hundredth of it.
pub(crate) const MAX_LENGTH: u64 = 1 << 27;
/// memcached takes longer expiry times for a date.
const MAX_EXPTIME_S: u64 = 30 * 24 * 3600;
const MAX_COUNT: u64 = 1_000_000;

/// The operation with a name of another system: of block traces and object stores.
pub(crate) fn foreign_action(name: &str) -> Result<Action, String> {
    let lower = name.to_ascii_lowercase();
    let method = lower.strip_prefix("rest.").and_then(|rest| rest.strip_suffix(".object"));
    match method.unwrap_or(&lower) {
        "get" | "read" | "r" => Ok(Action::Do(Verb::Get)),
        "set" | "put" | "write" | "w" => Ok(Action::Do(Verb::Set)),
        "del" | "delete" => Ok(Action::Do(Verb::Delete)),
        other => match action(other) {
            Ok(known) => Ok(known),
            Err(_) if other.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Ok(Action::Skip(other.to_owned()))
            }
            Err(refused) => Err(refused),
        },
    }
}

/// The operation with the name of a memcached command.
pub(crate) fn action(name: &str) -> Result<Action, String> {
    let name = name.to_ascii_lowercase();
    // CacheLib's leases: a get whose reply may ask the client to fill the cache, and the set that fills it.
    let name = name.strip_suffix("_lease").unwrap_or(&name);
    let verb = Verb::ALL.into_iter().find(|verb| verb.name() == name);
    match verb {
        // Not appends: the appended data would change what later reads find.
        Some(verb) if verb.extends() || verb.is_keyless() => {}
        Some(Verb::Mget | Verb::Mset | Verb::Fetch) | None => {}
        Some(verb) => return Ok(Action::Do(verb)),
    }
    let known = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if known && !name.is_empty() {
        Ok(Action::Skip(name.to_owned()))
    } else {
        Err(format!("{name:?} is not an operation"))
    }
}

pub(crate) fn length(text: &str) -> Result<u32, String> {
    number(text, "value size", MAX_LENGTH).map(|length| length as u32)
}

pub(crate) fn count(text: &str) -> Result<u32, String> {
    number(text, "operation count", MAX_COUNT).map(|count| count as u32)
}

/// Parse an expiry time in seconds. A date becomes the longest relative time.
pub(crate) fn exptime(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(seconds) => Ok(seconds.clamp(0, MAX_EXPTIME_S as i64) as u32),
        Err(_) => Err(format!("expiry time {text:?} is not a number of seconds")),
    }
}

/// The unit of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    name: &'static str,
    ns: u64,
}

impl TimeUnit {
    pub(crate) const SECONDS: TimeUnit = TimeUnit { name: "seconds", ns: 1_000_000_000 };
    const ALL: [(&str, TimeUnit); 5] = [
        ("s", TimeUnit::SECONDS),
        ("ms", TimeUnit { name: "milliseconds", ns: 1_000_000 }),
        ("us", TimeUnit { name: "microseconds", ns: 1000 }),
        ("100ns", TimeUnit { name: "steps of 100 ns", ns: 100 }),
        ("ns", TimeUnit { name: "nanoseconds", ns: 1 }),
    ];

    pub(crate) fn named(text: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, unit)| unit)
    }
}

/// No time is later, so that sums of times do not overflow.
const MAX_TIME_NS: u128 = u64::MAX as u128 - (1 << 40);

/// Parse seconds, with or without a fraction: 12, 0.5 or 2e-05. Returns ns.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    time(text, TimeUnit::SECONDS)
}

/// Parse a time, with or without a fraction. Returns ns.
pub(crate) fn time(text: &str, unit: TimeUnit) -> Result<u64, String> {
    let refuse = || format!("time {text:?} is not a number of {}", unit.name);
    if text.contains(['e', 'E']) {
        let ns = text.parse::<f64>().map_err(|_| refuse())? * unit.ns as f64;
        let fits = (0.0..MAX_TIME_NS as f64).contains(&ns);
        return if fits { Ok(ns.round() as u64) } else { Err(refuse()) };
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().map_err(|_| refuse())?;
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    let billionths: u64 = format!("{fraction:0<9}").parse().map_err(|_| refuse())?;
    let part = u128::from(billionths) * u128::from(unit.ns) / 1_000_000_000;
    let ns = u128::from(whole) * u128::from(unit.ns) + part;
    if ns <= MAX_TIME_NS { Ok(ns as u64) } else { Err(refuse()) }
}

/// Parse memcached's `ts`: seconds and, behind the point, microseconds without leading zeros: 1.5 is 1.000005 s.
/// Returns ns.
pub(crate) fn seconds_and_microseconds(text: &str) -> Result<u64, String> {
    let refuse = || format!("ts={text}: it is not seconds.microseconds");
    let (seconds, microseconds) = text.split_once('.').ok_or_else(refuse)?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(microseconds) || microseconds.len() > 6 {
        return Err(refuse());
    }
    let [seconds, microseconds] =
        [seconds, microseconds].map(|part| part.parse::<u64>().unwrap_or(u64::MAX));
    let ns = seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(microseconds * 1000));
    ns.filter(|ns| u128::from(*ns) <= MAX_TIME_NS).ok_or_else(refuse)
}

pub(crate) fn number(text: &str, what: &str, most: u64) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if number <= most => Ok(number),
        Ok(number) => Err(format!("{what} {number}: at most {most}")),
        Err(_) => Err(format!("{what} {text:?} is not a number")),
    }
}
