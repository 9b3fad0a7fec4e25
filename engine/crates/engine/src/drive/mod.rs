//! The verb `drive`: load a server from the command line, without Python.

mod arguments;
mod errors;
mod files;
mod format;
mod live;
mod measure;
mod play;
mod search;
mod search_run;
mod table;
mod totals;
mod warnings;

use std::process::ExitCode;

use crate::process::fail;

pub use arguments::Arguments;

/// Runs the verb: exit code 0; 1 when more failed than may, when nothing succeeded, or when no rate
/// met the objective; 2 for bad input.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = arguments.check().and_then(|()| match arguments.search {
        Some(objective) => search_run::find_rate(&arguments, objective),
        None => measure::measure(&arguments),
    });
    match done {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(complaint)) => {
            eprintln!("cachemark-engine: {complaint}");
            ExitCode::FAILURE
        }
        Err(error) => fail(error),
    }
}
