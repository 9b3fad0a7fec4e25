//! `completion`: print a script that completes this program's verbs and options in a shell.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::process::print_text;

#[derive(Args)]
pub struct Arguments {
    shell: Shell,
}

/// Print the script for `command`.
pub fn run(arguments: Arguments, mut command: Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    print_text(with_one_spelling(&String::from_utf8_lossy(&script)));
    ExitCode::SUCCESS
}

/// clap_complete 4.6 spells the dash of the program's name in two ways in bash's script. With both, bash finds
/// no option of a verb.
fn with_one_spelling(script: &str) -> String {
    script.replace("cachemark__subcmd__engine", "cachemark__engine")
}
