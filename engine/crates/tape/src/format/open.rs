//! Opens tapes. All checks happen here, once.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use memmap2::Mmap;

use super::check::{self, TapeError};
use super::reader::{Bytes, Tape};

impl Tape {
    /// Map a file and check it. The file must not change while it is mapped. Tapes are written under a
    /// temporary name and then renamed, so none does.
    pub fn open(path: &Path) -> Result<Tape, TapeError> {
        let file = File::open(path).map_err(TapeError::Io)?;
        // SAFETY: the mapping is private and read-only. Our own writer only renames complete files; if
        // another program truncates the file, that is not a case that we support.
        let map = unsafe { Mmap::map(&file) }.map_err(TapeError::Io)?;
        Tape::check(Bytes::Mapped(map))
    }

    /// Check a tape in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Tape, TapeError> {
        Tape::check(Bytes::Owned(bytes))
    }

    fn check(bytes: Bytes) -> Result<Tape, TapeError> {
        let header = check::header(bytes.as_slice())?;
        let tape = Tape { bytes, header, any_generation: AtomicBool::new(false) };
        check::keys(&tape)?;
        check::operations(&tape)?;
        check::times(&tape)?;
        Ok(tape)
    }
}
