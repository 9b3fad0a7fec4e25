//! Named workloads: `presets.toml`, whose options are parsed like the command line's.

use std::collections::BTreeMap;

use clap::Parser;
use serde::{Deserialize, Serialize};

use crate::options::workload::WorkloadArguments;

/// One named workload.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// One sentence on what it is.
    pub about: String,
    /// Where its numbers come from, and which are assumed.
    pub source: String,
    pub assumed: String,
    /// Workload options without their dashes, and their values as typed.
    pub options: BTreeMap<String, String>,
}

impl Preset {
    /// Its options as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let words =
            self.options.iter().flat_map(|(option, value)| [format!("--{option}"), value.clone()]);
        words.collect()
    }
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Options {
    #[command(flatten)]
    workload: WorkloadArguments,
}

/// All presets by name.
pub fn all() -> BTreeMap<String, Preset> {
    toml::from_str(include_str!("presets.toml")).expect("a table that is tested")
}

/// The options of a preset. An error lists all presets.
pub fn arguments(name: &str) -> Result<WorkloadArguments, String> {
    let mut presets = all();
    let Some(preset) = presets.remove(name) else {
        let known: Vec<String> = presets.into_keys().collect();
        let scans =
            if name == "ycsb-e" { " (YCSB E is scans, which memcached has none of)" } else { "" };
        return Err(format!("--preset: no {name:?}{scans}: {}", known.join(", ")));
    };
    Options::try_parse_from(preset.words())
        .map(|options| options.workload)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_preset_is_a_valid_workload() {
        for (name, preset) in all() {
            let arguments = arguments(&name).expect("options as they are typed");
            let workload = arguments.workload().expect("no preset in a preset");
            workload.check().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!preset.about.is_empty() && !preset.source.is_empty(), "{name}");
        }
    }

    #[test]
    fn an_unknown_preset_is_refused_with_a_list_of_all() {
        let refused = arguments("ycsb-e").expect_err("no scans");
        assert!(refused.contains("scans") && refused.contains("ycsb-a, "), "{refused}");
    }
}
