//! One shard: a hash table over a slab of entries that are linked from the most to the least
//! recently used.

use hashbrown::HashTable;

/// What an entry costs beside its key and value: the entry itself, its allocation's header, and
/// its place in the hash table at the usual load.
pub const ENTRY_OVERHEAD: usize = size_of::<Entry>() + 16 + 8;

const NONE: u32 = u32::MAX;

struct Entry {
    hash: u64,
    cas: u64,
    /// Key, then value.
    bytes: Box<[u8]>,
    flags: u32,
    /// Seconds since the epoch; 0 is never.
    expires_s: u32,
    stored_s: u32,
    accessed_s: u32,
    newer: u32,
    older: u32,
    key_length: u8,
    fetched: bool,
    marks: Marks,
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..usize::from(self.key_length)]
    }

    fn value(&self) -> &[u8] {
        &self.bytes[usize::from(self.key_length)..]
    }

    fn cost(&self) -> usize {
        self.bytes.len() + ENTRY_OVERHEAD
    }
}

/// An item as a reader sees it.
#[derive(Debug, PartialEq, Eq)]
pub struct Item<'a> {
    pub value: &'a [u8],
    pub flags: u32,
    pub cas: u64,
    /// Seconds since the epoch; 0 is never.
    pub expires_s: u32,
    /// When it was stored or last read.
    pub accessed_s: u32,
    /// Whether it was read since it was stored.
    pub fetched: bool,
    pub marks: Marks,
}

/// What the meta protocol notes on an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// To be stored anew; served until then.
    pub stale: bool,
    /// A client has been told that it is the one to store it anew.
    pub won: bool,
    /// Its key was given in base64, and is shown so.
    pub binary_key: bool,
}

/// How a value is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas(u64),
}

/// What came of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stored,
    NotStored,
    Exists,
    NotFound,
}

/// What a shard, or the store, has counted since it began or was reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub get_hits: u64,
    pub get_misses: u64,
    pub get_expired: u64,
    pub sets: u64,
    pub touch_hits: u64,
    pub touch_misses: u64,
    pub delete_hits: u64,
    pub delete_misses: u64,
    pub incr_hits: u64,
    pub incr_misses: u64,
    pub decr_hits: u64,
    pub decr_misses: u64,
    pub cas_hits: u64,
    pub cas_misses: u64,
    pub cas_badval: u64,
    pub total_items: u64,
    pub evictions: u64,
    pub evicted_unfetched: u64,
    pub expired_unfetched: u64,
}

impl Counters {
    pub fn add(&mut self, other: &Counters) {
        self.get_hits += other.get_hits;
        self.get_misses += other.get_misses;
        self.get_expired += other.get_expired;
        self.sets += other.sets;
        self.touch_hits += other.touch_hits;
        self.touch_misses += other.touch_misses;
        self.delete_hits += other.delete_hits;
        self.delete_misses += other.delete_misses;
        self.incr_hits += other.incr_hits;
        self.incr_misses += other.incr_misses;
        self.decr_hits += other.decr_hits;
        self.decr_misses += other.decr_misses;
        self.cas_hits += other.cas_hits;
        self.cas_misses += other.cas_misses;
        self.cas_badval += other.cas_badval;
        self.total_items += other.total_items;
        self.evictions += other.evictions;
        self.evicted_unfetched += other.evicted_unfetched;
        self.expired_unfetched += other.expired_unfetched;
    }
}

pub struct Shard {
    table: HashTable<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    used: usize,
    limit: usize,
    /// Items stored before this second are gone once it has come.
    flush_at_s: Option<u32>,
    pub counters: Counters,
}

/// What is to be stored; the key is at most 250 bytes.
pub struct Fresh<'a> {
    pub hash: u64,
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub flags: u32,
    pub expires_s: u32,
    pub cas: u64,
    pub marks: Marks,
    pub now_s: u32,
}

impl Shard {
    pub fn new(limit: usize) -> Shard {
        Shard {
            table: HashTable::new(),
            entries: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            used: 0,
            limit,
            flush_at_s: None,
            counters: Counters::default(),
        }
    }

    pub fn used(&self) -> usize {
        self.used
    }

    pub fn items(&self) -> usize {
        self.table.len()
    }

    /// Carry out a flush whose time has come; call it before anything else.
    pub fn advance(&mut self, now_s: u32) {
        if let Some(at_s) = self.flush_at_s.filter(|at_s| *at_s <= now_s) {
            self.flush_at_s = None;
            let stale: Vec<u32> = self
                .table
                .iter()
                .copied()
                .filter(|slot| self.entries[*slot as usize].stored_s < at_s)
                .collect();
            stale.into_iter().for_each(|slot| self.remove(slot));
        }
    }

    /// Drop what is stored before an instant. One flush waits at most: a new one takes the place
    /// of one that is not due.
    pub fn flush(&mut self, at_s: u32, now_s: u32) {
        self.advance(now_s);
        if at_s > now_s {
            self.flush_at_s = Some(at_s);
            return;
        }
        self.table.clear();
        self.entries.clear();
        self.free.clear();
        (self.newest, self.oldest, self.used) = (NONE, NONE, 0);
        self.flush_at_s = None;
    }

    /// The living entry of a key; an expired one is removed on the way.
    pub fn find(&mut self, hash: u64, key: &[u8], now_s: u32) -> Option<u32> {
        let entries = &self.entries;
        let same = |slot: &u32| {
            let entry = &entries[*slot as usize];
            entry.hash == hash && entry.key() == key
        };
        let slot = *self.table.find(hash, same)?;
        let entry = &self.entries[slot as usize];
        if entry.expires_s != 0 && entry.expires_s <= now_s {
            self.counters.expired_unfetched += u64::from(!entry.fetched);
            self.counters.get_expired += 1;
            self.remove(slot);
            return None;
        }
        Some(slot)
    }

    pub fn item(&self, slot: u32) -> Item<'_> {
        let entry = &self.entries[slot as usize];
        Item {
            value: entry.value(),
            flags: entry.flags,
            cas: entry.cas,
            expires_s: entry.expires_s,
            accessed_s: entry.accessed_s,
            fetched: entry.fetched,
            marks: entry.marks,
        }
    }

    /// The item was read: it is the most recently used now.
    pub fn used_now(&mut self, slot: u32, now_s: u32) {
        let entry = &mut self.entries[slot as usize];
        entry.fetched = true;
        entry.accessed_s = now_s;
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// The value of an item, to be written over in place; that is a use of the item too.
    pub fn rewrite(&mut self, slot: u32, cas: u64, now_s: u32) -> &mut [u8] {
        self.used_now(slot, now_s);
        let entry = &mut self.entries[slot as usize];
        entry.cas = cas;
        &mut entry.bytes[usize::from(entry.key_length)..]
    }

    pub fn set_expiry(&mut self, slot: u32, expires_s: u32) {
        self.entries[slot as usize].expires_s = expires_s;
    }

    pub fn set_marks(&mut self, slot: u32, marks: Marks) {
        self.entries[slot as usize].marks = marks;
    }

    pub fn set_cas(&mut self, slot: u32, cas: u64) {
        self.entries[slot as usize].cas = cas;
    }

    /// Put an item in place of the one of the same key, if there is one; the least recently used
    /// ones leave until it fits. Its slot, or `None` when it never would fit.
    pub fn put(&mut self, fresh: &Fresh<'_>, old: Option<u32>) -> Option<u32> {
        let cost = fresh.key.len() + fresh.value.len() + ENTRY_OVERHEAD;
        if cost > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(fresh.key.len() + fresh.value.len());
        bytes.extend_from_slice(fresh.key);
        bytes.extend_from_slice(fresh.value);
        if let Some(slot) = old {
            self.remove(slot);
        }
        while self.used + cost > self.limit {
            self.evict(fresh.now_s);
        }
        Some(self.insert(Entry {
            hash: fresh.hash,
            cas: fresh.cas,
            bytes: bytes.into_boxed_slice(),
            flags: fresh.flags,
            expires_s: fresh.expires_s,
            stored_s: fresh.now_s,
            accessed_s: fresh.now_s,
            newer: NONE,
            older: NONE,
            key_length: fresh.key.len() as u8,
            fetched: false,
            marks: fresh.marks,
        }))
    }

    fn insert(&mut self, entry: Entry) -> u32 {
        self.used += entry.cost();
        self.counters.total_items += 1;
        let hash = entry.hash;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.entries[slot as usize] = entry;
                slot
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        let entries = &self.entries;
        self.table.insert_unique(hash, slot, |slot| entries[*slot as usize].hash);
        self.link(slot);
        slot
    }

    pub fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        let entry = &mut self.entries[slot as usize];
        self.used -= entry.cost();
        entry.bytes = Box::default();
        if let Ok(found) = self.table.find_entry(entry.hash, |other| *other == slot) {
            found.remove();
        }
        self.free.push(slot);
    }

    fn evict(&mut self, now_s: u32) {
        let entry = &self.entries[self.oldest as usize];
        if entry.expires_s == 0 || entry.expires_s > now_s {
            self.counters.evictions += 1;
            self.counters.evicted_unfetched += u64::from(!entry.fetched);
        }
        self.remove(self.oldest);
    }

    fn link(&mut self, slot: u32) {
        let second = self.newest;
        let entry = &mut self.entries[slot as usize];
        (entry.newer, entry.older) = (NONE, second);
        match self.entries.get_mut(second as usize) {
            Some(second) => second.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = {
            let entry = &self.entries[slot as usize];
            (entry.newer, entry.older)
        };
        match self.entries.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }
}
