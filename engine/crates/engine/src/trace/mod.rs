//! The verb `trace`: convert traces.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cachemark_trace::{Columns, Conversion, Format, ImportOptions, Output, convert_file};
use clap::Subcommand;

use crate::options::units;
use crate::process::{fail, print_compact_json};
use crate::whole_file;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write a trace of any format in cachemark's own, or as CSV if the name of OUT ends in .csv; print what was
    /// written, in JSON
    Convert(ConvertArguments),
}

#[derive(clap::Args)]
struct ConvertArguments {
    /// The trace; also .zst and .gz
    from: PathBuf,
    /// The file to write
    out: PathBuf,
    /// twitter, kvcache, memcached or csv [default: recognised from the first lines]
    #[arg(long)]
    trace_format: Option<Format>,
    /// The columns of a trace without a header, such as time:ms,op,key,size
    #[arg(long, conflicts_with = "trace_format")]
    columns: Option<Columns>,
    /// Replace keys by a keyed hash, whose key is thrown away
    #[arg(long)]
    anonymous: bool,
    /// Keep one key of so many, with all its operations: 1/100
    #[arg(long, value_parser = units::fraction, default_value = "1/1")]
    sample: u32,
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let Action::Convert(arguments) = arguments.action;
    convert(&arguments).map_or_else(fail, |()| ExitCode::SUCCESS)
}

fn convert(arguments: &ConvertArguments) -> Result<(), String> {
    let options = ImportOptions {
        format: arguments.trace_format,
        columns: arguments.columns.clone(),
        ..ImportOptions::default()
    };
    let conversion = Conversion {
        output: output_of(&arguments.out),
        anonymous: arguments.anonymous,
        sampled: arguments.sample,
        tolerant: false,
        source: None,
    };
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
