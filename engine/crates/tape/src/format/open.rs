//! Opening a tape: everything is checked once.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use super::check::{self, TapeError};
use super::reader::{Bytes, Tape};

impl Tape {
    /// Map a file and check it. The file must not change while it is mapped; tapes are written
    /// under another name and renamed, so none does.
    pub fn open(path: &Path) -> Result<Tape, TapeError> {
        let file = File::open(path).map_err(TapeError::Io)?;
        // SAFETY: the mapping is private and read-only; a writer that truncates the file under us
        // would be another program's fault, and our own writer only renames whole files into place.
        let map = unsafe { Mmap::map(&file) }.map_err(TapeError::Io)?;
        Tape::check(Bytes::Mapped(map))
    }

    /// Check a tape that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Tape, TapeError> {
        Tape::check(Bytes::Owned(bytes))
    }

    fn check(bytes: Bytes) -> Result<Tape, TapeError> {
        let header = check::header(bytes.as_slice())?;
        let tape = Tape { bytes, header };
        check::keys(&tape)?;
        check::operations(&tape)?;
        check::times(&tape)?;
        Ok(tape)
    }
}
