//! Tapes of the command line: from a file, or in memory.

use std::path::Path;

use cachemark_tape::Tape;

/// Open the file that `--tape` names.
pub fn open(path: &Path) -> Result<Tape, String> {
    Tape::open(path).map_err(|error| format!("--tape {}: {error}", path.display()))
}

/// The tape of these bytes.
pub fn in_memory(bytes: Vec<u8>) -> Result<Tape, String> {
    Tape::from_bytes(bytes).map_err(|error| error.to_string())
}
