//! One line of a trace, whatever its format.

use cachemark_tape::Verb;

/// What was done to one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceEvent {
    /// In ns on the trace's own clock.
    pub at_ns: Option<u64>,
    pub key: String,
    /// How long the key was, where it is written shorter than it was.
    pub key_bytes: Option<u32>,
    pub action: Action,
    /// The value's length where it is known; reads that found nothing have none.
    pub length: Option<u32>,
    pub exptime_s: u32,
    /// So many times, one after the other.
    pub count: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    Do(Verb),
    /// The trace names something that a tape does not hold.
    Skip(String),
}

/// The longest value that is believed: servers of default settings take a hundredth of it.
const MAX_LENGTH: u64 = 1 << 27;
/// What is longer, memcached reads as a date.
const MAX_EXPTIME_S: u64 = 30 * 24 * 3600;
const MAX_COUNT: u64 = 1_000_000;

/// The operation of that name, as memcached's own commands are called.
pub(crate) fn action(name: &str) -> Result<Action, String> {
    let name = name.to_ascii_lowercase();
    // CacheLib's leases are a get that may be told to fill, and the set that does.
    let name = name.strip_suffix("_lease").unwrap_or(&name);
    let verb = Verb::ALL.into_iter().find(|verb| verb.name() == name);
    match verb {
        // What an append of a trace added would change what later reads find.
        Some(verb) if verb.extends() || verb.is_keyless() => {}
        Some(Verb::Mget | Verb::Mset | Verb::Fetch) | None => {}
        Some(verb) => return Ok(Action::Do(verb)),
    }
    let known = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if known && !name.is_empty() {
        Ok(Action::Skip(name.to_owned()))
    } else {
        Err(format!("{name:?} is no operation"))
    }
}

pub(crate) fn length(text: &str) -> Result<u32, String> {
    number(text, "value size", MAX_LENGTH).map(|length| length as u32)
}

pub(crate) fn count(text: &str) -> Result<u32, String> {
    number(text, "operation count", MAX_COUNT).map(|count| count as u32)
}

/// An expiry time in seconds; one beyond what is relative is the longest that is.
pub(crate) fn exptime(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(seconds) => Ok(seconds.clamp(0, MAX_EXPTIME_S as i64) as u32),
        Err(_) => Err(format!("expiry time {text:?} is no number of seconds")),
    }
}

/// Seconds, with a fraction or without, in ns.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let refuse = || format!("time {text:?} is no number of seconds");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().map_err(|_| refuse())?;
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().map_err(|_| refuse())?;
    let ns = whole.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanoseconds));
    // Sums with windows and periods stay inside 64 bits.
    ns.filter(|ns| *ns < 1 << 62).ok_or_else(refuse)
}

pub(crate) fn number(text: &str, what: &str, most: u64) -> Result<u64, String> {
    match text.parse::<u64>() {
        Ok(number) if number <= most => Ok(number),
        Ok(number) => Err(format!("{what} {number}: at most {most}")),
        Err(_) => Err(format!("{what} {text:?} is no number")),
    }
}
