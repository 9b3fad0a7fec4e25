//! The program. Its code is in the library, see `lib.rs`.

mod allocator;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> ExitCode {
    cachemark_engine::main()
}
