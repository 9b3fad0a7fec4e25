//! The verb `tape`: write a workload as a tape, or show a tape.

mod show;
mod write;

use std::collections::BTreeMap;
use std::process::ExitCode;

use cachemark_command::process::{fail, print_compact_json, print_text};
use clap::Subcommand;
use serde::Serialize;

use crate::options::presets::{self, Preset};
use crate::options::workload_settings::{self, Settings};

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
    /// Print workload options as the settings of an experiment, in JSON
    Settings {
        /// Workload options, such as --mix get=95,set=5 --size 1k
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
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
        Action::Settings { options } => {
            workload_settings::of_words(&options).map(|found| print_compact_json(&found))
        }
        Action::Presets { json: true } => {
            print_compact_json(&presets_with_settings());
            Ok(())
        }
        Action::Presets { json: false } => {
            list_presets();
            Ok(())
        }
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}

/// A preset, and the settings of an experiment that its options stand for.
#[derive(Serialize)]
struct PresetWithSettings {
    #[serde(flatten)]
    preset: Preset,
    settings: Settings,
}

fn presets_with_settings() -> BTreeMap<String, PresetWithSettings> {
    let with_settings = |(name, preset): (String, Preset)| {
        let settings = workload_settings::of_words(&preset.words())
            .expect("every preset's options are tested");
        (name, PresetWithSettings { preset, settings })
    };
    presets::all().into_iter().map(with_settings).collect()
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
