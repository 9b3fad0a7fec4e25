//! A store in a file that several processes share, best in /dev/shm.
//!
//! Readers take no lock and make no system call (`optimistic_read.rs`). A reader that dies leaves nothing
//! behind. If a writer dies, the next one recovers the region (`recovery.rs`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::memory::atomics::{LOCKED, SHARED};
use crate::memory::layout::{Geometry, StoreHead};
use crate::memory::mapping::Memory;
use crate::region::optimistic_read::{OptimisticRead, SharedValue};
use crate::store::Store;
use crate::table::hash;

/// "cmstore" and the version of the memory layout.
const MAGIC: u64 = u64::from_be_bytes(*b"cmstore\x02");
const HASH_PROBE: &[u8] = b"cachemark";

/// The required owner of a store: in a folder such as /dev/shm, every user can create files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// The user of this process.
    #[default]
    Own,
    /// The user with this number.
    User(u32),
}

impl Owner {
    /// The number of the user.
    fn user(self) -> u32 {
        match self {
            Owner::Own => geteuid().as_raw(),
            Owner::User(number) => number,
        }
    }

    /// Refuse a file of any other user.
    pub fn check(self, user: u32) -> io::Result<()> {
        if user == self.user() {
            return Ok(());
        }
        let text = format!("of user {user}, not of user {}", self.user());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    }
}

impl Store {
    /// Create a store in a file that does not exist yet.
    pub fn create(path: &Path, limit_bytes: usize, hash_power: Option<u32>) -> io::Result<Store> {
        let geometry = Geometry::new(limit_bytes, hash_power)
            .map_err(|text| io::Error::new(io::ErrorKind::InvalidInput, text))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(geometry.length() as u64)?;
        let store = Store::in_memory(Memory::shared(&file, geometry.length())?, geometry, true);
        store.initialize()?;
        write_head(&store);
        Ok(store)
    }

    /// Open the store that another process of this user created in a file.
    pub fn open(path: &Path) -> io::Result<Store> {
        Store::open_of(path, Owner::Own)
    }

    /// The same, of a user. What that user writes into the file is believed.
    pub fn open_of(path: &Path, owner: Owner) -> io::Result<Store> {
        let file = file_of(path, owner)?;
        let wrong = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text.to_owned()));
        let length = file.metadata()?.len();
        if length < size_of::<StoreHead>() as u64 {
            return wrong("no store, or an incomplete one");
        }
        let memory = Memory::shared(&file, length as usize)?;
        // SAFETY: the mapping is long enough and page-aligned, and the head is all atomics.
        let head = unsafe { &*memory.start().cast::<StoreHead>() };
        if !is_store(head) {
            return wrong("no store of this version of cachemark, or an incomplete one");
        }
        let geometry = Geometry {
            limit_bytes: head.limit_bytes.load(LOCKED),
            limit_bytes_max: head.limit_bytes.load(LOCKED),
            hash_power: head.hash_power.load(LOCKED),
            regions: head.regions.load(LOCKED),
        };
        if geometry.regions == 0 || geometry.length() as u64 != length {
            return wrong("a store whose file was truncated or extended");
        }
        Ok(Store::in_memory(memory, geometry, true))
    }

    /// Read a value without a copy. `look` may be called more than once, and may see bytes that are being
    /// overwritten: its result is used only if nothing changed meanwhile.
    #[inline]
    pub fn peek<R>(&self, key: &[u8], now_s: u32, look: impl Fn(&SharedValue) -> R) -> Option<R> {
        let hash = hash::of(key);
        let region = self.region(hash);
        let _guard = (!region.shared).then(|| self.grace_periods.begin_read());
        loop {
            let found = OptimisticRead::find(region, hash, key)?;
            if found.raw.expired(now_s) {
                if found.is_valid(region) {
                    return None;
                }
                continue;
            }
            let result = look(&found.shared_value());
            if found.is_valid(region) {
                region.record_use(found.number, found.slot);
                return Some(result);
            }
        }
    }
}

/// Write the header of a complete store, for other processes.
pub fn write_head(store: &Store) {
    let (head, geometry) = (store.regions[0].store(), store.geometry);
    head.hash.store(hash::of(HASH_PROBE), LOCKED);
    head.limit_bytes.store(geometry.limit_bytes, LOCKED);
    head.hash_power.store(geometry.hash_power, LOCKED);
    head.regions.store(geometry.regions, LOCKED);
    head.magic.store(MAGIC, SHARED);
}

/// Whether this is the head of a complete store of this version.
pub fn is_store(head: &StoreHead) -> bool {
    head.magic.load(SHARED) == MAGIC && head.hash.load(LOCKED) == hash::of(HASH_PROBE)
}

/// Open the file of a store. The checks are of the file that is open: one by its name would be of another.
pub fn file_of(path: &Path, owner: Owner) -> io::Result<File> {
    // To open a pipe without NONBLOCK could take for ever.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    owner.check(found.uid())?;
    Ok(file)
}
