//! The verb `trace`: convert traces, and print statistics of them.

mod convert;
mod fit;
mod fleet;
mod fleet_file;
mod fleet_told;
mod measured;
mod measured_told;
mod planned_fleet;
mod play;
mod predict;
mod predict_told;
mod reading;
mod show;
mod snapshot;
mod tape_requests;
mod told;

use std::process::ExitCode;

use cachemark_command::process::fail;
use clap::Subcommand;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write a trace of any format in cachemark's own, or as CSV if the name of OUT ends in .csv; print its summary,
    /// in JSON
    Convert(convert::Arguments),
    /// Print statistics of a trace's traffic, in JSON: mix, sizes, keys, popularity, bursts
    Show(show::Arguments),
    /// Write an experiment whose tape behaves like a trace, and print how far the two are apart, in JSON
    Fit(fit::Arguments),
    /// Predict how many reads miss with more or less memory, and print it in JSON
    Predict(predict::Arguments),
    /// Count the servers that a trace needs, play it through them with one lost, and print it in JSON
    Fleet(fleet::Arguments),
    /// Play a trace against a server with fills after misses, and print its hits and misses, in JSON
    Play(play::Arguments),
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.action {
        Action::Convert(arguments) => convert::convert(&arguments),
        Action::Show(arguments) => show::show(&arguments),
        Action::Fit(arguments) => fit::fit_trace(&arguments),
        Action::Predict(arguments) => predict::predict(&arguments),
        Action::Fleet(arguments) => fleet::plan_fleet(&arguments),
        Action::Play(arguments) => play::play(&arguments),
    };
    done.map_or_else(fail, |()| ExitCode::SUCCESS)
}
