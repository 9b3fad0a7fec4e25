//! `trace show`: statistics of a trace's traffic.

use std::path::PathBuf;

use cachemark_command::process::print_compact_json;
use cachemark_command::units;
use cachemark_trace::each_record;
use cachemark_trace::file::{Origin, Summary};
use cachemark_trace_statistics::{Collector, TraceStatistics};
use serde::Serialize;

use super::reading::Reading;

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace; also .zst and .gz
    trace: PathBuf,
    #[command(flatten)]
    reading: Reading,
    /// Follow at most this number of keys; if there are more, a part of them, chosen by their hash
    #[arg(long, value_parser = units::whole, default_value = "1m")]
    keys: u64,
}

/// A trace, and its statistics.
#[derive(Serialize)]
struct Shown {
    format: &'static str,
    origin: Origin,
    summary: Summary,
    statistics: TraceStatistics,
}

pub fn show(arguments: &Arguments) -> Result<(), String> {
    let most_keys = usize::try_from(arguments.keys).unwrap_or(usize::MAX);
    let mut collector = Collector::new(most_keys);
    let read = each_record(&arguments.trace, &arguments.reading.options(), |record| {
        collector.add(record)
    })?;
    if read.summary.records == 0 {
        return Err(format!("{}: it has no operations", arguments.trace.display()));
    }
    print_compact_json(&Shown {
        format: read.format,
        origin: read.origin,
        summary: read.summary,
        statistics: collector.finish(),
    });
    Ok(())
}
