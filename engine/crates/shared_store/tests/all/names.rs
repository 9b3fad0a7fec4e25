//! Stores by name: who sees them, and what is refused.

use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::process;

use cachemark_storage::Mode;
use cachemark_store::{NamedStore, Owner, Settings, now_s};

const SETTINGS: Settings = Settings { memory_bytes: 1 << 20, hash_power: None, mode: 0o600 };

/// A name of this test's own, whose store is destroyed at the end.
struct Name(String);

impl Name {
    fn of(test: &str) -> Name {
        Name(format!("test-{test}-{}", process::id()))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _ = NamedStore::destroy(&self.0);
    }
}

#[test]
fn a_store_outlives_its_creator() {
    let name = Name::of("outlives");
    let store = NamedStore::create(&name.0, &SETTINGS).expect("a store");
    store.store(Mode::Set, b"k", 0, 0, b"v", now_s());
    drop(store);
    let store = NamedStore::open(&name.0).expect("the same store");
    assert_eq!(store.get(b"k", None, now_s(), |item| item.value.to_vec()), Some(b"v".to_vec()));
}

#[test]
fn a_store_has_the_permissions_that_were_asked_for() {
    for mode in [0o600, 0o660, 0o666] {
        let name = Name::of(&format!("mode-{mode:o}"));
        let store = NamedStore::create(&name.0, &Settings { mode, ..SETTINGS }).expect("a store");
        let found = store.path().metadata().expect("its file").permissions().mode();
        assert_eq!(found & 0o7777, mode);
    }
}

#[test]
fn a_name_is_taken_once_and_nothing_is_left_behind() {
    let name = Name::of("once");
    let folder = |name: &Name| {
        let files = std::fs::read_dir("/dev/shm").expect("shared memory");
        files
            .filter(|f| f.as_ref().unwrap().file_name().to_string_lossy().contains(&name.0))
            .count()
    };
    let store = NamedStore::create(&name.0, &SETTINGS).expect("a store");
    store.store(Mode::Set, b"k", 0, 0, b"v", now_s());
    let again = NamedStore::create(&name.0, &SETTINGS).err().expect("refused");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);
    assert_eq!(folder(&name), 1);
    assert_eq!(NamedStore::open(&name.0).expect("intact").usage(now_s()).items, 1);
    let too_small = Settings { hash_power: Some(20), ..SETTINGS };
    let other = Name::of("too-small");
    assert!(NamedStore::create(&other.0, &too_small).is_err());
    assert_eq!(folder(&other), 0);
}

#[test]
fn a_name_that_could_lead_elsewhere_is_refused() {
    for name in ["", "a/b", "..", "../x", "a b", "\u{e9}", "a\0b", &"x".repeat(201)] {
        let error = NamedStore::open(name).err().expect("refused").kind();
        // `..` is a name like any other: the prefix makes it one.
        let expected = if name == ".." { ErrorKind::NotFound } else { ErrorKind::InvalidInput };
        assert_eq!(error, expected, "{name:?}");
    }
}

#[test]
fn what_is_no_store_is_named_with_its_file() {
    let name = Name::of("damaged");
    let path = NamedStore::create(&name.0, &SETTINGS).expect("a store").path().to_owned();
    for bytes in [&b""[..], &[0; 4096]] {
        std::fs::write(&path, bytes).expect("a file");
        let error = NamedStore::open(&name.0).err().expect("refused").to_string();
        let place = format!("{}: no store", path.display());
        assert!(error.starts_with(&place) && error.ends_with("make the store anew"), "{error}");
    }
}

/// Everybody may make a file in shared memory. To give one away takes root, so that others look from the other
/// side: they ask for the store of another user than the one that made it.
#[test]
fn another_users_store_is_opened_only_by_its_owners_name() {
    let name = Name::of("owner");
    let settings = Settings { mode: 0o666, ..SETTINGS };
    let path = NamedStore::create(&name.0, &settings).expect("a store").path().to_owned();
    let own = path.metadata().expect("its file").uid();
    let other = own + 1;
    NamedStore::open_of(&name.0, Owner::User(own)).expect("the owner was named");
    let refused = if chown(&path, Some(other), None).is_ok() {
        NamedStore::open_of(&name.0, Owner::User(other)).expect("the owner was named");
        NamedStore::open(&name.0)
    } else {
        NamedStore::open_of(&name.0, Owner::User(other))
    };
    let error = refused.err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    let remedy = "name its owner, if you trust that user";
    assert!(error.to_string().ends_with(remedy), "{error}");
}

/// Root may remove every file: the store of another user stays unless its owner is named.
#[test]
fn another_users_store_is_destroyed_only_by_its_owners_name() {
    let name = Name::of("destroyed");
    let path = NamedStore::create(&name.0, &SETTINGS).expect("a store").path().to_owned();
    let own = path.metadata().expect("its file").uid();
    let other = own + 1;
    let refused = if chown(&path, Some(other), None).is_ok() {
        NamedStore::destroy(&name.0)
    } else {
        NamedStore::destroy_of(&name.0, Owner::User(other))
    };
    let error = refused.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(path.exists());
    let owner = path.metadata().expect("its file").uid();
    NamedStore::destroy_of(&name.0, Owner::User(owner)).expect("the owner was named");
    assert!(!path.exists());
}

#[test]
fn a_link_in_place_of_a_store_is_not_followed() {
    let (name, link) = (Name::of("target"), Name::of("link"));
    let target = NamedStore::create(&name.0, &SETTINGS).expect("a store").path().to_owned();
    let place = target.with_file_name(format!("cachemark-store.{}", link.0));
    symlink(&target, &place).expect("a link");
    let error = NamedStore::open(&link.0).err().expect("refused").to_string();
    assert!(error.starts_with(&format!("{}: ", place.display())), "{error}");
    let taken = NamedStore::create(&link.0, &SETTINGS).err().expect("refused");
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
}
