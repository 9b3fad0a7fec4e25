//! A store by its name: it is made once, opened by many processes, and destroyed by name.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use cachemark_storage::{LIMIT_BYTES_MIN, Owner, Store};

const FOLDER: &str = "/dev/shm";
const PREFIX: &str = "cachemark-store.";
const NAME_BYTES_MAX: usize = 200;
/// Others than the owner, the group and everybody have no permissions to be given.
const MODE_MAX: u32 = 0o777;

/// How a named store is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The most memory that it uses; at least 64 KiB.
    pub memory_bytes: usize,
    /// With it the table has 2 to this power slots and never grows.
    pub hash_power: Option<u32>,
    /// The permissions of its file. Whoever uses the store has to be allowed to read and write it.
    pub mode: u32,
}

/// An open store.
pub struct NamedStore {
    store: Store,
    path: PathBuf,
}

impl NamedStore {
    /// Make a store. It must not exist. No process sees it before it is complete.
    pub fn create(name: &str, settings: &Settings) -> io::Result<NamedStore> {
        let path = path_of(name)?;
        if settings.mode > MODE_MAX {
            return Err(invalid(format!(
                "mode {:o} is not between 0 and {MODE_MAX:o}",
                settings.mode
            )));
        }
        if settings.memory_bytes < LIMIT_BYTES_MIN {
            return Err(invalid(format!(
                "a store needs {LIMIT_BYTES_MIN} bytes of memory, and {} were given",
                settings.memory_bytes
            )));
        }
        let unfinished = Unfinished::beside(&path);
        let store = Store::create(&unfinished.0, settings.memory_bytes, settings.hash_power)?;
        fs::set_permissions(&unfinished.0, Permissions::from_mode(settings.mode))?;
        // A link, unlike a rename, replaces nothing.
        fs::hard_link(&unfinished.0, &path).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => io::Error::new(
                ErrorKind::AlreadyExists,
                format!("the store {name:?} exists: open it, or destroy it first"),
            ),
            _ => error,
        })?;
        Ok(NamedStore { store, path })
    }

    /// Open a store of this process's user.
    pub fn open(name: &str) -> io::Result<NamedStore> {
        NamedStore::open_of(name, Owner::Own)
    }

    /// Open a store of a user, who is trusted with all that this program does with its values.
    pub fn open_of(name: &str, owner: Owner) -> io::Result<NamedStore> {
        let path = path_of(name)?;
        let store = Store::open_of(&path, owner).map_err(|error| explain(error, name))?;
        Ok(NamedStore { store, path })
    }

    /// Remove the name of a store of this process's user. Its memory is free as soon as no process has it open
    /// any more.
    pub fn destroy(name: &str) -> io::Result<()> {
        NamedStore::destroy_of(name, Owner::Own)
    }

    /// Remove the name of a user's store; also of a file or link there that is no store.
    pub fn destroy_of(name: &str, owner: Owner) -> io::Result<()> {
        let path = path_of(name)?;
        let removed = fs::symlink_metadata(&path)
            .and_then(|found| owner.check(found.uid()))
            .and_then(|()| fs::remove_file(&path));
        removed.map_err(|error| explain(error, name))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for NamedStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// The file of a store that is being made; it is removed again.
struct Unfinished(PathBuf);

impl Unfinished {
    fn beside(path: &Path) -> Unfinished {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Unfinished(path.with_file_name(format!(".{name}.{}.{number}", process::id())))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = fs::remove_file(&self.0);
    }
}

fn explain(error: io::Error, name: &str) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("there is no store {name:?}: make it first"))
        }
        ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            let text =
                format!("the store {name:?} is {error}: name its owner, if you trust that user");
            io::Error::new(error.kind(), text)
        }
        ErrorKind::PermissionDenied => {
            io::Error::new(error.kind(), format!("the store {name:?} belongs to somebody else"))
        }
        kind => {
            let text =
                format!("{FOLDER}/{PREFIX}{name}: {error}: remove it, and make the store anew");
            io::Error::new(kind, text)
        }
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, text)
}

/// Bytes that programs can still store in shared memory; none if the system does not say. Who writes to a
/// store when nothing is left is killed by the system.
pub fn free_bytes() -> Option<u64> {
    let found = rustix::fs::statvfs(FOLDER).ok()?;
    // A file system without a limit says that it has no blocks.
    (found.f_blocks > 0).then(|| found.f_bavail.saturating_mul(found.f_frsize))
}

fn path_of(name: &str) -> io::Result<PathBuf> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) {
        let text = format!(
            "{name:?} is no name of a store: 1 to {NAME_BYTES_MAX} letters, digits, dots, hyphens or underscores"
        );
        return Err(invalid(text));
    }
    Ok(Path::new(FOLDER).join(format!("{PREFIX}{name}")))
}
