//! Which keys expire when.

use std::collections::BTreeMap;

/// No item expires at this second.
pub(crate) const NEVER_S: u32 = u32::MAX;

/// The second at which an item expires that is stored now: never `NEVER_S - 1`.
pub(crate) fn deadline_s(now_s: u32, ttl_s: u32) -> u32 {
    if ttl_s == 0 { NEVER_S } else { now_s.saturating_add(ttl_s).min(NEVER_S - 2) }
}

/// Keys by the second in which to look whether they have expired. The owner asks for one look at a time for each key.
#[derive(Clone, Default)]
pub(crate) struct Deadlines {
    looks: BTreeMap<u32, Vec<u64>>,
}

impl Deadlines {
    pub fn look_at(&mut self, second: u32, hash: u64) {
        if second != NEVER_S {
            self.looks.entry(second).or_default().push(hash);
        }
    }

    /// The keys to look at, of one second that has passed.
    pub fn due(&mut self, now_s: u32) -> Option<Vec<u64>> {
        let first = self.looks.first_entry()?;
        (*first.key() <= now_s).then(|| first.remove())
    }
}
