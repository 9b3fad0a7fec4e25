//! The verb `drive`: loads a server from the command line, without Python.
//!
//! It measures and counts. What a window shows about the server is judged in Python only (`analysis/verdict`).

mod arguments;
mod errors;
mod files;
pub(crate) mod json_lines;
mod live;
mod measure;
mod play;
mod second;
mod table;
mod totals;

use std::process::ExitCode;

use cachemark_command::process::{fail, print_error};

pub use arguments::Arguments;

/// Run the verb. The exit code is 1 if more operations failed than are allowed, or if none succeeded; 2 for bad
/// input.
pub fn run(arguments: Arguments) -> ExitCode {
    match arguments.check().and_then(|()| measure::measure(&arguments)) {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(problem)) => {
            print_error(&problem);
            ExitCode::FAILURE
        }
        Err(error) => fail(error),
    }
}
