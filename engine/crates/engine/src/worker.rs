//! The verb `worker`.

use std::process::ExitCode;

#[derive(clap::Args)]
pub struct Arguments {}

/// Runs the verb; the exit code is the process's own.
pub fn run(_arguments: Arguments) -> ExitCode {
    ExitCode::FAILURE
}
