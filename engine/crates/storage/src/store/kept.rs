//! A store of one process in a file, whose items are still there when the process has ended and another one opens it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::memory::atomics::{LOCKED, SHARED};
use crate::memory::layout::{Geometry, StoreHead};
use crate::memory::mapping::Memory;
use crate::region::segment_state::state;
use crate::store::Store;
use crate::store::file::{Owner, file_of, is_store, write_head};

impl Store {
    /// An empty store in a file, which is made, or emptied if it is there. No other process may use the file meanwhile.
    pub fn keep(path: &Path, limit_bytes: usize, hash_power: Option<u32>) -> io::Result<Store> {
        let geometry = geometry(limit_bytes, hash_power)?;
        let mut options = OpenOptions::new();
        let file = match options.read(true).write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                file_of(path, Owner::Own)?
            }
            opened => opened?,
        };
        lock(&file)?;
        file.set_len(0)?;
        file.set_len(geometry.length() as u64)?;
        let store = Store::in_memory(Memory::kept(file, geometry.length())?, geometry, false);
        store.initialize()?;
        write_head(&store);
        Ok(store)
    }

    /// The store that `keep` made in a file, with its items. `None` if it is of another size or another version. The
    /// process that used it has ended, and has completed its last change.
    pub fn kept(
        path: &Path,
        limit_bytes: usize,
        hash_power: Option<u32>,
        now_s: u32,
    ) -> io::Result<Option<Store>> {
        let geometry = geometry(limit_bytes, hash_power)?;
        let file = match file_of(path, Owner::Own) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        lock(&file)?;
        if file.metadata()?.len() != geometry.length() as u64 {
            return Ok(None);
        }
        let memory = Memory::kept(file, geometry.length())?;
        // SAFETY: the mapping is long enough and page-aligned, and the head is all atomics.
        let head = unsafe { &*memory.start().cast::<StoreHead>() };
        let same = is_store(head)
            && head.limit_bytes.load(LOCKED) == geometry.limit_bytes
            && head.hash_power.load(LOCKED) == geometry.hash_power;
        if !same {
            return Ok(None);
        }
        let store = Store::in_memory(memory, geometry, false);
        for mut writer in store.writers(now_s) {
            // No reader of the last process is left.
            for segment in writer.segments() {
                let meta = writer.region.segment_meta(segment);
                if meta.state.load(LOCKED) == state::RETIRED {
                    meta.state.store(state::FREE, SHARED);
                }
            }
            writer.recover();
        }
        Ok(Some(store))
    }
}

fn geometry(limit_bytes: usize, hash_power: Option<u32>) -> io::Result<Geometry> {
    Geometry::new(limit_bytes, hash_power)
        .map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Lock the file for as long as it is open.
fn lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        io::Error::new(io::ErrorKind::ResourceBusy, "another process has its items there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Marks, Mode, Outcome};

    const NOW: u32 = 1_700_000_000;

    #[test]
    fn items_are_there_when_the_store_is_opened_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("items");
        let value = |n: usize| vec![n as u8; n * 61 % 70_000];
        let store = Store::keep(&path, 64 << 20, None).expect("a store");
        for n in 0..600 {
            let stored = store.store(Mode::Set, format!("{n}").as_bytes(), 7, 0, &value(n), NOW);
            assert_eq!(stored, Some(Outcome::Stored));
        }
        store.store(Mode::Set, b"short", 0, 5, b"x", NOW);
        store.delete(b"599", NOW);
        let cas = store.get(b"5", None, NOW, |item| item.cas);
        let unfinished = store.reserve(b"598", 0, 0, 90_000, NOW).expect("room");
        let before = store.usage(NOW);
        drop((unfinished, store));

        let again = Store::kept(&path, 64 << 20, None, NOW + 9).expect("a file").expect("a store");
        for n in 0..599 {
            let read = |item: &crate::Item<'_>| (item.value.to_vec(), item.flags);
            assert_eq!(
                again.get(format!("{n}").as_bytes(), None, NOW + 9, read),
                Some((value(n), 7))
            );
        }
        assert_eq!(again.get(b"short", None, NOW + 9, |_| ()), None, "it expired meanwhile");
        assert_eq!(again.get(b"599", None, NOW + 9, |_| ()), None);
        assert_eq!(again.get(b"5", None, NOW + 9, |item| item.cas), cas);
        assert_eq!(again.usage(NOW + 9).items, before.items - 1);
        for n in 0..3000 {
            again.store(Mode::Set, format!("{n}").as_bytes(), 0, 0, &value(n), NOW + 9);
        }
        let marks = Marks::default();
        let item = again.reserve(b"long", 0, 0, 90_000, NOW + 9).expect("room");
        again.store_reserved(item, Mode::Set, 0, marks, NOW + 9);
        assert!(again.usage(NOW + 9).taken_bytes <= 64 << 20);
    }

    #[test]
    fn a_file_of_another_size_or_in_use_is_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("items");
        assert!(Store::kept(&path, 8 << 20, None, NOW).expect("no file").is_none());
        let store = Store::keep(&path, 8 << 20, None).expect("a store");
        let error = Store::keep(&path, 8 << 20, None).err().expect("in use");
        assert!(error.to_string().contains("another process"), "{error}");
        drop(store);
        assert!(Store::kept(&path, 9 << 20, None, NOW).expect("a file").is_none());
        std::fs::write(&path, b"something else").expect("written");
        assert!(Store::kept(&path, 8 << 20, None, NOW).expect("a file").is_none());
    }
}
