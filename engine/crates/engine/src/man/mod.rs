//! `man`: write a manual page of the program, and one of each verb.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};

use crate::process::fail;

#[derive(Args)]
pub struct Arguments {
    /// The folder, such as ~/.local/share/man/man1
    folder: PathBuf,
}

/// Write the pages of `command`.
pub fn run(arguments: Arguments, command: Command) -> ExitCode {
    let written = fs::create_dir_all(&arguments.folder)
        .and_then(|()| clap_mangen::generate_to(command, &arguments.folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("{}: {error}", arguments.folder.display())),
    }
}
