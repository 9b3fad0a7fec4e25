//! Items whose values are written straight into the store's memory, piece by piece, before anybody can find them.

use std::sync::Arc;

use crate::items::item::{ItemParts, RawItem, Value};
use crate::items::marks::Marks;
use crate::memory::mapping::Memory;
use crate::store::Store;
use crate::store::entry::Entry;
use crate::store::outcome::{Mode, Outcome, expires_s};
use crate::store::preconditions;
use crate::table::hash;

/// The memory of an item that is not stored yet. Its segments stay where they are until it is stored or released.
pub struct Reservation {
    hash: u64,
    key: Box<[u8]>,
    flags: u32,
    offset: usize,
    bytes: usize,
    value: *mut u8,
    length: usize,
    /// The value is in there.
    _memory: Arc<Memory>,
}

// SAFETY: the memory of the value is its own until it is stored.
unsafe impl Send for Reservation {}

impl Reservation {
    /// The value: all of it is written before the item is stored.
    pub fn value(&mut self) -> &mut [u8] {
        // SAFETY: no slot leads to the item, and nothing empties its segments, so that no other thread reads or writes
        // these bytes; they are inside the mapping, which is alive.
        unsafe { std::slice::from_raw_parts_mut(self.value, self.length) }
    }
}

impl Store {
    /// Memory for an item whose value arrives in pieces. `None` if there is none for it now, or if processes share
    /// the store. Release it if it is not stored.
    pub fn reserve(
        &self,
        key: &[u8],
        flags: u32,
        exptime: i64,
        length: usize,
        now_s: u32,
    ) -> Option<Reservation> {
        let hash = hash::of(key);
        let region = self.region(hash);
        if region.shared {
            return None;
        }
        let parts = ItemParts {
            key,
            value: Value::Later(length),
            flags,
            expires_s: expires_s(exptime, now_s),
            accessed_s: now_s,
            cas: None,
        };
        let (offset, bytes) = self.writer(hash, now_s).reserve(hash, parts)?;
        // SAFETY: the header was written there.
        let raw = unsafe { RawItem::at(region.data_ptr(offset)) };
        let value = raw.key_start().wrapping_add(key.len());
        let _memory = region.memory();
        Some(Reservation { hash, key: key.into(), flags, offset, bytes, value, length, _memory })
    }

    /// Store an item whose value is complete, if the present item has this cas number (0 is any). Returns the new
    /// item's cas number, or 0 if nothing was stored.
    pub fn store_reserved(
        &self,
        reservation: Reservation,
        mode: Mode,
        expected_cas: u64,
        marks: Marks,
        now_s: u32,
    ) -> (Outcome, u64) {
        let Reservation { hash, ref key, flags, offset, bytes, length, .. } = reservation;
        let mut entry = Entry::new(self.writer(hash, now_s), hash, key);
        entry.count_set(length, flags);
        entry.writer.unpin(offset);
        if let Some(refused) = preconditions::check(mode, expected_cas, &mut entry) {
            entry.writer.mark_dead(offset, bytes);
            return (refused, 0);
        }
        let (cas, old) = (entry.writer.region.implied_cas(offset), entry.slot);
        entry.writer.link_reserved(hash, offset, bytes, marks, old);
        (Outcome::Stored, cas)
    }

    /// Give up an item whose value did not arrive.
    pub fn release(&self, reservation: &Reservation, now_s: u32) {
        let mut writer = self.writer(reservation.hash, now_s);
        writer.unpin(reservation.offset);
        writer.mark_dead(reservation.offset, reservation.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 1_700_000_000;

    fn get(store: &Store, key: &str) -> Option<Vec<u8>> {
        store.get(key.as_bytes(), None, NOW, |item| item.value.to_vec())
    }

    #[test]
    fn a_reserved_item_is_found_once_it_is_stored() {
        let store = Store::new(8 << 20);
        for length in [0, 5, 20_000, 300_000, 1_500_000] {
            store.store(Mode::Set, b"k", 0, 0, b"old", NOW);
            let mut reservation = store.reserve(b"k", 7, 60, length, NOW).expect("room");
            reservation.value().fill(b'v');
            assert_eq!(get(&store, "k"), Some(b"old".to_vec()));
            let marks = Marks::default();
            let (outcome, cas) = store.store_reserved(reservation, Mode::Set, 0, marks, NOW);
            assert_eq!(outcome, Outcome::Stored);
            let read = |item: &crate::Item<'_>| {
                (item.value == vec![b'v'; length], item.flags, item.cas, item.expires_s)
            };
            assert_eq!(store.get(b"k", None, NOW, read), Some((true, 7, cas, NOW + 60)));
            assert_eq!(store.usage(NOW).items, 1);
        }
        let refused = store.reserve(b"k", 0, 0, 9, NOW).expect("room");
        let (outcome, cas) = store.store_reserved(refused, Mode::Add, 0, Marks::default(), NOW);
        assert_eq!((outcome, cas), (Outcome::NotStored, 0));
        assert_eq!(get(&store, "k"), Some(vec![b'v'; 1_500_000]));
        assert_eq!(store.remove_expired(NOW + 60), 1, "it is among those that expire");
    }

    #[test]
    fn what_is_reserved_outlives_floods_and_flushes() {
        let store = Store::new(4 << 20);
        let mut held: Vec<(String, Reservation)> = Vec::new();
        for (n, length) in [100, 40_000, 70_000, 200_000].into_iter().enumerate() {
            let key = format!("held {n}");
            let mut reservation = store.reserve(key.as_bytes(), 0, 0, length, NOW).expect("room");
            reservation.value().fill(n as u8);
            held.push((key, reservation));
        }
        for n in 0..2000 {
            let value = vec![b'x'; n * 37 % 90_000];
            let stored = store.store(Mode::Set, format!("{n}").as_bytes(), 0, 0, &value, NOW);
            assert_eq!(stored, Some(Outcome::Stored));
            if n % 500 == 0 {
                store.flush(0, NOW);
            }
        }
        let (key, given_up) = held.remove(1);
        store.release(&given_up, NOW);
        assert_eq!(get(&store, &key), None);
        for (key, mut reservation) in held {
            let expected = reservation.value().to_vec();
            assert!(expected.windows(2).all(|pair| pair[0] == pair[1]), "no thread wrote there");
            store.store_reserved(reservation, Mode::Set, 0, Marks::default(), NOW);
            assert_eq!(get(&store, &key), Some(expected));
        }
        assert!(
            store.regions.iter().all(|region| region.local.lock().expect("it").pins.is_empty())
        );
    }

    #[test]
    fn only_a_share_of_the_store_can_be_reserved() {
        let store = Store::new(4 << 20);
        let reserve = |n: usize| store.reserve(format!("{n}").as_bytes(), 0, 0, 60_000, NOW);
        let held: Vec<Reservation> = (0..100).map_while(reserve).collect();
        assert!((3..40).contains(&held.len()), "{}", held.len());
        assert_eq!(
            store.store(Mode::Set, b"k", 0, 0, &[b'x'; 100_000], NOW),
            Some(Outcome::Stored)
        );
        held.iter().for_each(|reservation| store.release(reservation, NOW));
        assert!(reserve(0).is_some());
    }
}
