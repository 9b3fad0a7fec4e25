//! `drive --search`: plays the rates that the search asks for.

use std::sync::Arc;

use serde::Serialize;

use crate::drive::arguments::Arguments;
use crate::drive::play::{connected, play, prefill, warm_up};
use crate::drive::search::{self, Objective, Point, SpoiledBy};
use crate::drive::table;
use crate::drive::verdict;
use crate::options::tape_file;
use crate::process::{print_json_document, print_text};

#[derive(Serialize)]
struct Curve<'a> {
    server: &'a str,
    objective: &'a str,
    closed_loop_rate: f64,
    best_rate: Option<f64>,
    points: &'a [Point],
}

/// Find the highest rate that meets the objective, and print the results. Returns a message if there is none.
pub fn find_rate(arguments: &Arguments, objective: Objective) -> Result<Option<String>, String> {
    let closed = arguments.workload.closed();
    let tape = Arc::new(tape_file::in_memory(closed.tape(None)?)?);
    let mut client = connected(arguments, &tape)?;
    if !arguments.no_prefill {
        prefill(&mut client, arguments, &tape)?;
    }
    let repeats = warm_up(&mut client, arguments, &tape)?;
    // An open loop on these connections cannot do more than a closed one.
    let window = ("closed loop", Some(arguments.duration()));
    let most = play(&mut client, arguments, &tape, window, repeats, None)?;
    let most = most.metrics.ok() as f64 * 1e9 / most.elapsed_ns.max(1) as f64;
    if most < 1.0 {
        return Err(format!("--server {}: no operation was answered", arguments.server));
    }
    drop(client);
    let found = search::search(most, |rate| {
        let bytes = arguments.workload.at_rate(rate).tape(Some(arguments.duration()))?;
        let tape = Arc::new(tape_file::in_memory(bytes)?);
        let mut client = connected(arguments, &tape)?;
        let name = format!("{rate:.0}/s");
        let repeats = warm_up(&mut client, arguments, &tape)?;
        let window = (name.as_str(), Some(arguments.duration()));
        let result = play(&mut client, arguments, &tape, window, repeats, None)?;
        let allow = |failed, of| arguments.max_errors.allow(failed, of);
        Ok(search::point(rate, &result, objective, allow))
    })?;
    let text = format!("p{}<{:?}", objective.percent, objective.below);
    if arguments.json {
        print_json_document(&Curve {
            server: &arguments.server,
            objective: &text,
            closed_loop_rate: most,
            best_rate: found.best,
            points: &found.points,
        });
    } else {
        print_text(format_args!("closed loop: {most:.0} operations a second\n"));
        print_text(table::curve(&found, &text));
    }
    Ok(found.best.is_none().then(|| match found.deciding().and_then(|point| point.spoiled_by) {
        Some(SpoiledBy::Generator) => format!(
            "{text}: {}: it sent too late; use more --threads or CPUs, and more --connections",
            verdict::LIMITED
        ),
        Some(SpoiledBy::Few) => {
            format!("{text}: not judged: too few operations in a window; use a longer --duration")
        }
        None => format!("no rate met {text}; the curve shows why each rate missed it"),
    }))
}
