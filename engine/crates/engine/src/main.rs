//! The program. Its code is in the library, see `lib.rs`.

use std::process::ExitCode;

// Its blocks are allocated as this crate says.
use cachemark_allocator as _;

fn main() -> ExitCode {
    cachemark_engine::main()
}
