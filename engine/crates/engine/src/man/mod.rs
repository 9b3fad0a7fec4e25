//! `man`: write a manual page of the program, and one of each verb.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};

use cachemark_command::process::fail;
use clap::{Args, Command};

#[derive(Args)]
pub struct Arguments {
    /// The folder, such as ~/.local/share/man/man1
    folder: PathBuf,
}

/// Write the pages of `command`.
pub fn run(arguments: Arguments, command: Command) -> ExitCode {
    match write(command, &arguments.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(format!("{}: {error}", arguments.folder.display())),
    }
}

/// All pages, or none: they are made in a folder beside, and moved when the last one is written.
fn write(command: Command, folder: &Path) -> io::Result<()> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder)?;
    let beside = folder.join(format!(".{}.tmp", process::id()));
    let written = fs::create_dir(&beside)
        .and_then(|()| clap_mangen::generate_to(command, &beside))
        .and_then(|()| move_all(&beside, folder));
    let _ = fs::remove_dir_all(&beside);
    if written.is_err() && is_new {
        let _ = fs::remove_dir(folder);
    }
    written
}

fn move_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::rename(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
