//! `completion`: print a script that completes this program's verbs and options in a shell.

use std::process::ExitCode;

use cachemark_command::process::print_text;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::options::presets;

#[derive(Args)]
pub struct Arguments {
    shell: Shell,
}

/// Print the script for `command`.
pub fn run(arguments: Arguments, command: Command) -> ExitCode {
    let mut command = with_presets(command);
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    print_text(with_one_spelling(&String::from_utf8_lossy(&script)));
    ExitCode::SUCCESS
}

/// The same command, whose options `--preset` name all presets. An unknown one has its own message, so the
/// command itself takes any.
fn with_presets(command: Command) -> Command {
    command.mut_subcommands(with_presets).mut_args(|argument| {
        if argument.get_id() == "preset" {
            let names = presets::all().into_keys().map(|name| &*name.leak());
            argument.value_parser(PossibleValuesParser::new(names))
        } else {
            argument
        }
    })
}

/// clap_complete 4.6 spells the dash of the program's name in two ways in bash's script. With both, bash finds
/// no option of a verb.
fn with_one_spelling(script: &str) -> String {
    script.replace("cachemark__subcmd__engine", "cachemark__engine")
}
