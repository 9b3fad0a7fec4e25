//! The verb `drive`: loads a server from the command line, without Python.

mod arguments;
mod errors;
mod files;
mod format;
mod json_lines;
mod live;
mod measure;
mod play;
mod repeats;
mod search;
mod search_run;
mod second;
mod table;
mod totals;
mod verdict;
mod warnings;

use std::process::ExitCode;

use crate::process::{fail, print_error};

pub use arguments::Arguments;

/// Run the verb. The exit code is 1 if more operations failed than are allowed, if none succeeded, if the
/// window is INVALID, or if no rate met the objective; 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = arguments.check().and_then(|()| match arguments.search {
        Some(objective) => search_run::find_rate(&arguments, objective),
        None => measure::measure(&arguments),
    });
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(problem)) => {
            print_error(&problem);
            ExitCode::FAILURE
        }
        Err(error) => fail(error),
    }
}
