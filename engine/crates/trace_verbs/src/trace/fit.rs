//! `trace fit`: an experiment whose tape behaves like a trace.

use std::path::PathBuf;

use cachemark_command::process::print_compact_json;
use cachemark_command::whole_file;
use cachemark_trace::each_record;
use cachemark_trace::file::Origin;
use cachemark_trace_fit::{Beside, Collected, Distance, Fit, fit};
use serde::Serialize;

use super::reading::Reading;
use super::told::{Section, Told, unread};

#[derive(clap::Args)]
pub struct Arguments {
    /// The trace; also .zst and .gz
    trace: PathBuf,
    /// The experiment file to write
    out: PathBuf,
    #[command(flatten)]
    reading: Reading,
}

/// A fit, and the trace that it is of.
#[derive(Serialize)]
struct Fitted {
    format: &'static str,
    origin: Origin,
    fit: Fit,
}

pub fn fit_trace(arguments: &Arguments) -> Result<(), String> {
    let place = |error: String| format!("{}: {error}", arguments.trace.display());
    let mut collected = Collected::new();
    let read = each_record(&arguments.trace, &arguments.reading.options(), |record| {
        collected.add(record)
    })?;
    if read.origin.sampled > 1 {
        let found = format!("it has one key of {}", read.origin.sampled);
        return Err(place(format!("{found}: a fit needs a trace of all keys")));
    }
    if collected.requests.is_empty() {
        return Err(place("it has no operations".to_owned()));
    }
    let fit = fit(collected).map_err(place)?;
    let text = fit.workload.toml();
    whole_file::write(&arguments.out, text.as_bytes())
        .map_err(|error| whole_file::write_error("--out", &arguments.out, &error))?;
    let fitted = Fitted { format: read.format, origin: read.origin, fit };
    print_compact_json(&told(arguments, fitted, unread(&read.summary)));
    Ok(())
}

fn told(arguments: &Arguments, figures: Fitted, mut warnings: Vec<String>) -> Told<Fitted> {
    let (workload, missing) = (&figures.fit.workload, figures.fit.missing.iter());
    warnings.extend(missing.map(|each| format!("Not in the workload: {each}.")));
    // The file has the distribution's parameters, which may be hundreds of numbers.
    let law = workload.drawn.distribution.split(':').next().unwrap_or_default();
    let rate = workload.rate.map_or_else(String::new, |rate| format!(", {rate:.1}/s"));
    Told {
        about: "A workload like the trace",
        title: format!(
            "{}: like {}, with {law} over {} keys",
            arguments.out.display(),
            arguments.trace.display(),
            workload.drawn.keys
        ),
        facts: vec![
            ("requests of the trace", figures.fit.requests.to_string()),
            ("schedule", format!("{}{rate}", workload.schedule)),
        ],
        warnings,
        sections: vec![distances(&figures.fit), both(&figures.fit)],
        figures,
    }
}

fn distances(fit: &Fit) -> Section {
    let shown = |of: &Distance, value: Option<f64>| match value {
        None => "–".to_owned(),
        Some(value) if of.most.is_some() => format!("{:.2} points", 100.0 * value),
        Some(value) => format!("{value:.3}"),
    };
    let row = |of: &Distance| {
        let value = shown(of, of.value);
        let is_far = of.value.is_some_and(|value| value > of.limit);
        let value = if is_far { format!("{value}, too far") } else { value };
        vec![of.of.to_owned(), value, shown(of, of.most), shown(of, Some(of.limit))]
    };
    let untold = |of: &Distance| of.reason.map(|reason| format!("{}: –, {reason}.", of.of));
    let mut notes = vec![
        "Hit ratios: the mean and the largest difference of two predictions for the same sizes of memory. Others: the \
         distance of Kolmogorov and Smirnov, from 0 to 1."
            .to_owned(),
    ];
    notes.extend(fit.distances.iter().filter_map(untold));
    Section {
        title: "How far it is from the trace",
        columns: vec!["", "distance", "largest", "limit"],
        rows: fit.distances.iter().map(row).collect(),
        notes,
        prose: false,
    }
}

fn both(fit: &Fit) -> Section {
    let row = |of: &Beside| vec![of.of.to_owned(), of.trace.clone(), of.fit.clone()];
    Section {
        title: "Both",
        columns: vec!["", "trace", "workload"],
        rows: fit.beside.iter().map(row).collect(),
        ..Section::default()
    }
}
