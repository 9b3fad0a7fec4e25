//! Workload options as the settings of an experiment.
//!
//! `cachemark run` hands over what was typed, so that there is one grammar for both programs.

use std::collections::BTreeMap;

use clap::{Args, Command, FromArgMatches};
use serde_json::{Value, json};

use crate::options::workload::{Mix, WorkloadArguments};

/// The settings of each table of an experiment: `workload`, `keys`, `values` and `load`.
pub type Settings = BTreeMap<&'static str, BTreeMap<&'static str, Value>>;

/// For each option: the table of the experiment, and the name of the setting there.
const PLACES: [(&str, &str, &str); 26] = [
    ("keys", "keys", "count"),
    ("distribution", "keys", "distribution"),
    ("zipf", "keys", "distribution"),
    ("key_length", "keys", "length"),
    ("key_pattern", "keys", "pattern"),
    ("key_names", "keys", "names"),
    ("counters", "keys", "counters"),
    ("size", "values", "size"),
    ("compressibility", "values", "compressibility"),
    ("preset", "workload", "preset"),
    ("trace", "workload", "trace"),
    ("trace_format", "workload", "trace_format"),
    ("columns", "workload", "trace_columns"),
    ("gets", "workload", "trace_gets"),
    ("left_out", "workload", "trace_left_out"),
    ("mix", "workload", "mix"),
    ("order", "workload", "order"),
    ("sequence", "workload", "sequence"),
    ("key_step", "workload", "key_step"),
    ("run", "workload", "run"),
    ("prefill", "workload", "prefill"),
    ("hit_ratio", "workload", "hit_ratio"),
    ("exptime", "workload", "exptime_s"),
    ("ops", "workload", "records"),
    ("schedule", "load", "schedule"),
    ("think", "load", "think"),
];

/// The settings that these options stand for. An error names the option.
pub fn of_words(words: &[String]) -> Result<Settings, String> {
    let command = WorkloadArguments::augment_args(Command::new("options").no_binary_name(true));
    let matches = command.try_get_matches_from(words).map_err(|error| first_line(&error))?;
    let arguments =
        WorkloadArguments::from_arg_matches(&matches).map_err(|error| first_line(&error))?;
    let mut settings = Settings::new();
    for (option, table, name) in PLACES {
        if matches.value_source(option) != Some(clap::parser::ValueSource::CommandLine) {
            continue;
        }
        let typed = matches.get_raw(option).and_then(|mut texts| texts.next());
        let typed = typed.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
        settings.entry(table).or_default().insert(name, value(option, &typed, &arguments));
    }
    if let Some(rate) = arguments.rate {
        settings.entry("load").or_default().insert("rate", json!(rate));
    }
    Ok(settings)
}

/// Numbers and lists as such. Distributions and the like stay as they were typed.
fn value(option: &str, typed: &str, arguments: &WorkloadArguments) -> Value {
    match option {
        "keys" => json!(arguments.keys),
        "counters" => json!(arguments.counters),
        "compressibility" => json!(arguments.compressibility),
        "key_step" => json!(arguments.key_step),
        "run" => json!(arguments.run),
        "prefill" => json!(arguments.prefill),
        "hit_ratio" => json!(arguments.hit_ratio),
        "left_out" => json!(arguments.left_out),
        "ops" => json!(arguments.ops),
        "key_names" => json!(arguments.key_names),
        "sequence" => json!(typed.split_whitespace().collect::<Vec<_>>()),
        "zipf" => json!(format!("zipf:{typed}")),
        // Pairs, because the order of the kinds counts.
        "mix" => json!(arguments.mix.as_ref().map(|Mix(entries)| {
            let pair =
                |entry: &cachemark_tape::MixEntry| (entry.verb.kind(entry.noreply), entry.weight);
            entries.iter().map(pair).collect::<Vec<_>>()
        })),
        _ => json!(typed),
    }
}

/// The error, without clap's advice to look at its help.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::presets;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_are_settings_of_an_experiment() {
        let found = of_words(&words(
            "--mix set=1,get=19 --size 1k..64k --keys 1M --zipf 0.99 --key-length 16..40 --records 50k --rate 20k",
        ));
        let expected = json!({
            "workload": {"mix": [["set", 1.0], ["get", 19.0]], "records": 50_000},
            "keys": {"count": 1_000_000, "distribution": "zipf:0.99", "length": "16..40"},
            "values": {"size": "1k..64k"},
            "load": {"rate": 20_000.0},
        });
        assert_eq!(found.map(|settings| json!(settings)), Ok(expected));
    }

    #[test]
    fn every_workload_option_has_a_place() {
        let command = WorkloadArguments::augment_args(Command::new("options"));
        let options: Vec<String> =
            command.get_arguments().map(|option| option.get_id().to_string()).collect();
        let known = |id: &String| {
            // The seed is the experiment's; the rate is a number without a text of its own.
            ["seed", "rate"].contains(&id.as_str())
                || PLACES.iter().any(|(option, ..)| option == id)
        };
        assert_eq!(
            options.iter().filter(|id| !known(id)).collect::<Vec<_>>(),
            Vec::<&String>::new()
        );
    }

    #[test]
    fn an_error_is_a_line_that_names_the_option() {
        let refused = of_words(&words("--size 4q")).expect_err("no unit");
        assert!(refused.contains("--size") && refused.contains("100..1000"), "{refused}");
        assert!(!refused.contains('\n'), "{refused}");
        assert!(of_words(&words("--trace a --mix get=1")).is_err());
    }

    #[test]
    fn each_preset_is_settings() {
        for (name, preset) in presets::all() {
            assert!(of_words(&preset.words()).is_ok_and(|found| !found.is_empty()), "{name}");
        }
    }
}
