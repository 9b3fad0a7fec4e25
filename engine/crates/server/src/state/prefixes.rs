//! `stats detail`: how often keys of each prefix were read, stored and deleted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The uses of the keys of one prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

/// The use of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Get { hit: bool },
    Set,
    Delete,
}

/// The counts of all prefixes. Keys without a prefix are not counted.
#[derive(Debug, Default)]
pub struct Prefixes(Mutex<BTreeMap<Vec<u8>, Counts>>);

/// More prefixes than this are not counted, so that keys of strangers do not use up the memory.
const PREFIXES_MAX: usize = 100_000;

impl Prefixes {
    /// Count a use of a key whose prefix ends at `delimiter`.
    pub fn count(&self, key: &[u8], delimiter: u8, usage: Use) {
        let Some(end) = key.iter().position(|byte| *byte == delimiter) else { return };
        let mut all = self.lock();
        if all.len() >= PREFIXES_MAX && !all.contains_key(&key[..end]) {
            return;
        }
        let counts = all.entry(key[..end].to_vec()).or_default();
        match usage {
            Use::Get { hit } => {
                counts.gets += 1;
                counts.hits += u64::from(hit);
            }
            Use::Set => counts.sets += 1,
            Use::Delete => counts.deletes += 1,
        }
    }

    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Append a line for each prefix, and `END`.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (prefix, counts) in self.lock().iter() {
            let Counts { gets, hits, sets, deletes } = counts;
            out.extend_from_slice(b"PREFIX ");
            out.extend_from_slice(prefix);
            let line = format!(" get {gets} hit {hits} set {sets} del {deletes}\r\n");
            out.extend_from_slice(line.as_bytes());
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, Counts>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_counted_by_prefix() {
        let prefixes = Prefixes::default();
        for (key, usage) in [
            ("a:1", Use::Set),
            ("a:1", Use::Get { hit: true }),
            ("a:2:3", Use::Get { hit: false }),
            ("b:", Use::Delete),
            ("none", Use::Set),
        ] {
            prefixes.count(key.as_bytes(), b':', usage);
        }
        let mut out = Vec::new();
        prefixes.write(&mut out);
        let expected =
            "PREFIX a get 2 hit 1 set 1 del 0\r\nPREFIX b get 0 hit 0 set 0 del 1\r\nEND\r\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
