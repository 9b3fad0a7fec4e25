//! The verb `serve`: the embedded server, or with a script the fidelity server.

mod announcement;
mod arguments;
pub mod embedded;
mod scripted;

use std::process::ExitCode;

use cachemark_command::process::fail;

pub use arguments::Arguments;

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let served = match &arguments.script {
        Some(path) => scripted::serve(&arguments, path),
        None => embedded::serve(&arguments),
    };
    served.map_or_else(fail, |()| ExitCode::SUCCESS)
}
