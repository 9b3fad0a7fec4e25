//! `trace convert`.

use std::path::{Path, PathBuf};

use cachemark_command::process::print_compact_json;
use cachemark_command::units;
use cachemark_command::whole_file;
use cachemark_trace::{Conversion, Output, convert_file};

use super::reading::Reading;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace; also .zst and .gz
    from: PathBuf,
    /// The file to write
    out: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Replace keys by a keyed hash, whose key is thrown away
    #[arg(long)]
    anonymous: bool,
    /// Round sizes of values up, to four sizes for each doubling
    #[arg(long)]
    round_sizes: bool,
    /// Keep this share of the keys, with all their operations: 1/100
    #[arg(long, value_parser = units::fraction, default_value = "1/1")]
    sample: u32,
}

pub fn convert(arguments: &Arguments) -> Result<(), String> {
    let options = arguments.reading.options();
    let conversion = Conversion {
        output: output_of(&arguments.out),
        anonymous: arguments.anonymous,
        rounded: arguments.round_sizes,
        sampled: arguments.sample,
        tolerant: false,
        source: None,
    };
    whole_file::check_other(&arguments.out, &arguments.from)?;
    let converted = whole_file::write_with(&arguments.out, |into| {
        convert_file(&arguments.from, &options, &conversion, into)
    });
    let place = |error| format!("{}: cannot be written: {error}", arguments.out.display());
    print_compact_json(&converted.map_err(place)??);
    Ok(())
}

/// The format of a file with this name.
fn output_of(path: &Path) -> Output {
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_csv { Output::Csv } else { Output::Cachemark }
}
