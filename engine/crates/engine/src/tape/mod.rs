//! The verb `tape`: write a workload as a tape, or show a tape.

mod show;
mod write;

use std::process::ExitCode;

use clap::Subcommand;

use crate::options::presets;
use crate::process::{fail, print_compact_json, print_text};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write a tape
    Write(Box<write::Arguments>),
    /// Print a tape's header and first records
    Show(show::Arguments),
    /// List the named workloads
    Presets {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.action {
        Action::Write(arguments) => write::write(&arguments),
        Action::Show(arguments) => show::show(&arguments),
        Action::Presets { json: true } => {
            print_compact_json(&presets::all());
            Ok(())
        }
        Action::Presets { json: false } => {
            list_presets();
            Ok(())
        }
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn list_presets() {
    for (name, preset) in presets::all() {
        print_text(format_args!("{name}: {}\n    source   {}\n", preset.about, preset.source));
        if !preset.assumed.is_empty() {
            print_text(format_args!("    assumed  {}\n", preset.assumed));
        }
        let options: Vec<String> =
            preset.options.iter().map(|(option, value)| format!("--{option} {value}")).collect();
        print_text(format_args!("    options  {}\n", options.join(" ")));
    }
}
