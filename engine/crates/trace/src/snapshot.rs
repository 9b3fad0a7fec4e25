//! The items that a memcached holds, by `lru_crawler metadump`: `key=a%3Ab exp=-1 la=1795269935 cas=1 fetch=no cls=1
//! size=64 flags=0`. `flags` is there since memcached 1.6.24.
//!
//! A trace has them as operations `item`: at the time of the last access that memcached noted, with the seconds until
//! they expire, and as succeeded if they were read since they were stored.

use std::collections::{BTreeMap, HashMap};

use crate::anonymous::Sampler;
use crate::convert::Requests;
use crate::file::{Record, Summary};
use crate::watch_log::decoded;

/// The operation of an item.
pub const ITEM: &str = "item";
/// Among the server's numbers: from the first time of the trace to the snapshot.
pub const SNAPSHOT_SECONDS: &str = "snapshot_s";

/// The memory of an item besides its key and value: a header, and a cas number unless the server has none.
const HEADER_BYTES: u64 = 48;
const CAS_BYTES: u64 = 8;
const FLAGS_BYTES: u64 = 4;
/// The end of the key, and CR LF behind the value.
const ENDS_BYTES: u64 = 3;
const SECOND_NS: u64 = 1_000_000_000;

struct Item {
    accessed_s: u64,
    key_at: u64,
    value_bytes: u32,
    /// 0: it does not expire.
    left_s: u32,
    key_bytes: u8,
    fetched: bool,
}

/// Collects the lines of a dump; then gives its items, those first whose last access is longest ago. About 60 bytes of
/// memory for each item.
pub struct Snapshot {
    now_s: u64,
    sampler: Sampler,
    items: Vec<Item>,
    keys: Vec<u8>,
    given: usize,
    lines: u64,
    left_out: BTreeMap<String, u64>,
    server: BTreeMap<String, u64>,
}

impl Snapshot {
    /// A snapshot at this Unix time, of one key of `sampled`. `server` has the server's own numbers.
    pub fn new(now_s: u64, sampled: u32, server: BTreeMap<String, u64>) -> Snapshot {
        Snapshot {
            // memcached's own times have 32 bits.
            now_s: now_s.min(u64::from(u32::MAX)),
            sampler: Sampler::new(sampled),
            items: Vec::new(),
            keys: Vec::new(),
            given: 0,
            lines: 0,
            left_out: BTreeMap::new(),
            server,
        }
    }

    /// The next line of the dump. One that is not understood is counted.
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        let Some((key, item)) = self.item(line) else {
            return self.leave_out("that were not understood");
        };
        match item {
            None => self.leave_out("that have expired"),
            Some(item) if self.sampler.takes(&key) => {
                self.items.push(item);
                self.keys.extend_from_slice(&key);
            }
            Some(_) => {}
        }
    }

    /// All lines are there: put the items in order.
    pub fn finish(&mut self) {
        self.items.sort_by_key(|item| item.accessed_s);
        let first_s = self.items.first().map_or(self.now_s, |item| item.accessed_s);
        self.server.insert(SNAPSHOT_SECONDS.to_owned(), self.now_s - first_s);
    }

    fn leave_out(&mut self, reason: &str) {
        *self.left_out.entry(reason.to_owned()).or_default() += 1;
    }

    /// The key and the item of a line; no item if it has expired.
    fn item(&self, line: &str) -> Option<(Vec<u8>, Option<Item>)> {
        let fields: HashMap<&str, &str> =
            line.split_ascii_whitespace().filter_map(|field| field.split_once('=')).collect();
        let number = |name: &str| fields.get(name)?.parse::<i64>().ok();
        let key = decoded(fields.get("key")?).ok()?;
        let key_bytes = u8::try_from(key.len()).ok().filter(|length| *length > 0)?;
        let (expires_s, accessed_s) = (number("exp")?, u64::try_from(number("la")?).ok()?);
        let left_s = expires_s.saturating_sub(self.now_s as i64);
        let besides = HEADER_BYTES
            + if number("cas")? > 0 { CAS_BYTES } else { 0 }
            + if number("flags").unwrap_or(0) > 0 { FLAGS_BYTES } else { 0 }
            + ENDS_BYTES;
        let size = u64::try_from(number("size")?).ok()?;
        let value_bytes = size.checked_sub(besides + u64::from(key_bytes))?;
        let item = Item {
            accessed_s: accessed_s.min(self.now_s),
            key_at: self.keys.len() as u64,
            value_bytes: u32::try_from(value_bytes).ok()?,
            left_s: if expires_s <= 0 { 0 } else { left_s.clamp(0, u32::MAX.into()) as u32 },
            key_bytes,
            fetched: *fields.get("fetch")? == "yes",
        };
        Some((key, (expires_s <= 0 || left_s > 0).then_some(item)))
    }
}

impl Requests for Snapshot {
    fn next(&mut self) -> Result<Option<Record<'_>>, String> {
        let Some(item) = self.items.get(self.given) else { return Ok(None) };
        self.given += 1;
        let key_at = item.key_at as usize;
        Ok(Some(Record {
            at_ns: Some((item.accessed_s - self.items[0].accessed_s) * SECOND_NS),
            operation: ITEM,
            key: &self.keys[key_at..key_at + usize::from(item.key_bytes)],
            key_bytes: None,
            length: Some(item.value_bytes),
            ttl_s: item.left_s,
            count: 1,
            client: None,
            succeeded: Some(item.fetched),
            joined: false,
        }))
    }

    fn ending(&mut self) -> (u64, Summary) {
        let summary = Summary {
            left_out: self.left_out.clone(),
            server: self.server.clone(),
            ..Summary::default()
        };
        (self.lines, summary)
    }

    fn are_sampled(&self) -> bool {
        true
    }
}
