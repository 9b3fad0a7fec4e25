//! An entry: a key of the store with its region locked.

use cachemark_storage::{Content, Marks, Store};

const NOW: u32 = 1_700_000_000;

#[test]
fn an_entry_is_changed_in_place() {
    let store = Store::new(1 << 20);
    let mut entry = store.entry(b"k", NOW);
    assert!(entry.item().is_none());
    let cas = entry.fresh_cas();
    let marks = Marks { binary_key: true, ..Marks::default() };
    let content = Content { value: b"v", flags: 7, expires_s: NOW + 9, cas, marks };
    assert!(entry.put(&content));
    entry.set_marks(Marks { stale: true, ..marks });
    entry.set_cas(99);
    drop(entry);
    let mut entry = store.entry(b"k", NOW + 5);
    let item = entry.item().expect("an item");
    assert_eq!((item.value, item.flags, item.cas), (&b"v"[..], 7, 99));
    assert_eq!((item.accessed_s, item.expires_s, item.fetched), (NOW, NOW + 9, false));
    assert!(item.marks.stale && item.marks.binary_key && !item.marks.won);
    entry.record_read();
    let item = entry.item().expect("an item");
    assert_eq!((item.accessed_s, item.fetched), (NOW + 5, true));
    entry.set_expiry(NOW + 6);
    drop(entry);
    assert!(store.entry(b"k", NOW + 6).item().is_none(), "it has expired");
}

#[test]
fn an_entry_is_removed_once() {
    let store = Store::new(1 << 20);
    let mut entry = store.entry(b"k", NOW);
    let marks = Marks::default();
    assert!(entry.put(&Content { value: b"v", flags: 0, expires_s: 0, cas: 1, marks }));
    entry.remove();
    entry.remove();
    assert!(entry.item().is_none());
    drop(entry);
    assert_eq!(store.usage(NOW).items, 0);
}
