//! The program. Its code is in the library, see `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cachemark_engine::main()
}
