//! The verb `memcached`: the embedded server behind memcached's own command line, with its defaults, messages and
//! exit statuses. Options that tune what this server has not are accepted, and named once on stderr; options whose
//! promise it would not keep are refused.

mod checks;
mod command_line;
mod configuration;
mod endpoints;
mod extended;
mod extended_option;
mod extended_tls;
mod memory_file;
mod numbers;
mod options;
mod port_file;
mod serve;
mod system;
mod text;

use std::ffi::OsString;
use std::process::ExitCode;

use cachemark_command::process::{print_error, print_text};

use crate::memcached::configuration::Ending;

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    /// memcached's options; -h lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let configuration = command_line::parse(arguments.options).and_then(checks::completed);
    match configuration.and_then(|configuration| serve::serve(&configuration)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Ending::Printed(text)) => {
            print_text(text);
            ExitCode::SUCCESS
        }
        Err(Ending::Failed { status, message }) => {
            print_error(&message);
            ExitCode::from(status)
        }
    }
}
