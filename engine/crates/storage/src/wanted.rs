//! A key that is asked for, and what is known of it before its turn comes. Those who know their next
//! keys while they still work on another have what a read looks at brought into the processor's
//! caches: first the part of the table that says where the item is, later the item.

use crate::hash;
use crate::store::Store;

#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    /// Where in the table it most likely is.
    pub(crate) slot: Option<usize>,
}

impl<'a> Wanted<'a> {
    #[inline]
    pub fn new(key: &'a [u8]) -> Wanted<'a> {
        Wanted { key, hash: hash::of(key), slot: None }
    }

    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.key
    }

    /// This, if it is about these very bytes; else what is to be known of them.
    #[inline]
    pub fn or_new(this: Option<Wanted<'a>>, key: &'a [u8]) -> Wanted<'a> {
        match this {
            Some(wanted) if std::ptr::eq(wanted.key, key) => wanted,
            _ => Wanted::new(key),
        }
    }
}

impl Store {
    /// A key will be asked for: its part of the table is fetched.
    #[inline]
    pub fn foresee<'a>(&self, key: &'a [u8]) -> Wanted<'a> {
        let wanted = Wanted::new(key);
        self.region(wanted.hash).warm_slots(wanted.hash);
        wanted
    }

    /// It will be asked for soon: what is there now says where its item is, which is fetched.
    #[inline]
    pub fn warm(&self, wanted: &mut Wanted<'_>) {
        wanted.slot = self.region(wanted.hash).warm_item(wanted.hash);
    }
}
