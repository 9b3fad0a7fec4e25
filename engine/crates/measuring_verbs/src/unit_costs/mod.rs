//! The verb `unit-costs`: the CPU time of one system call of each kind, one wait, one page fault, and one allocation
//! of the C library with its release.
//!
//! Each cost is the median over several batches, which are played in turns: a busy moment disturbs one batch of
//! each kind. A kind whose batches disagree too much to have a cost is left out.

mod calls;
mod echoes;
mod kind;

use std::collections::BTreeMap;
use std::io::Error;
use std::process::ExitCode;

use cachemark_command::process::{fail, print_compact_json};
use cachemark_load::pin_to_cpu;
use serde::Serialize;

use calls::own_calls;
use echoes::{ByteEcho, EventEcho};
use kind::Kind;

/// How many batches of each kind; an odd number has a median.
const ROUNDS: usize = 9;

#[derive(clap::Args)]
pub struct Arguments {
    /// The CPU of the thread that is measured [default: any]
    #[arg(long)]
    cpu: Option<usize>,
    /// The CPU of the thread that answers it [default: any]
    #[arg(long)]
    peer_cpu: Option<usize>,
}

#[derive(Serialize)]
struct UnitCosts {
    cost_ns: BTreeMap<&'static str, f64>,
}

/// Measure, and print one line of JSON. The exit code is 2 if a call fails that every system has.
pub fn run(arguments: Arguments) -> ExitCode {
    measure(&arguments).map_or_else(
        |error| fail(format!("unit-costs: {error}")),
        |costs| {
            print_compact_json(&costs);
            ExitCode::SUCCESS
        },
    )
}

fn measure(arguments: &Arguments) -> Result<UnitCosts, Error> {
    let (mut bytes, mut events) =
        (ByteEcho::new(arguments.peer_cpu)?, EventEcho::new(arguments.peer_cpu)?);
    if let Some(cpu) = arguments.cpu {
        pin_to_cpu(cpu)?;
    }
    let mut kinds = own_calls()?;
    kinds.push(Kind { name: "byte_round_trip", batch: Box::new(move || bytes.batch()) });
    kinds.push(Kind { name: "event_round_trip", batch: Box::new(move || events.batch()) });
    let mut samples: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for kind in &mut kinds {
            samples.entry(kind.name).or_default().push((kind.batch)()?);
        }
    }
    Ok(UnitCosts { cost_ns: costs(samples) })
}

fn costs(samples: BTreeMap<&'static str, Vec<f64>>) -> BTreeMap<&'static str, f64> {
    let mut costs: BTreeMap<&'static str, f64> =
        samples.into_iter().map(|(name, values)| (name, median(values))).collect();
    let mut taken = |name| costs.remove(name).unwrap_or_default();
    let (bytes, events) = (taken("byte_round_trip"), taken("event_round_trip"));
    // A round trip over an eventfd is a write, a read and a wait; over a socket a send, a receive and a wait.
    let wait = events - 2.0 * costs["wakes"];
    let send = bytes - costs["full_recvs"] - wait;
    costs.insert("switches", wait);
    costs.insert("sends", send);
    costs.retain(|_, cost| *cost > 0.0);
    costs
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_is_a_round_trip_without_receive_and_wait() {
        let sampled = [
            ("byte_round_trip", 10.0),
            ("event_round_trip", 6.0),
            ("full_recvs", 2.0),
            ("wakes", 1.0),
        ];
        let found = costs(sampled.into_iter().map(|(name, cost)| (name, vec![cost])).collect());
        assert_eq!(found["switches"], 4.0);
        assert_eq!(found["sends"], 4.0);
    }

    #[test]
    fn a_cost_below_nothing_is_left_out() {
        let sampled = [
            ("byte_round_trip", 3.0),
            ("event_round_trip", 6.0),
            ("full_recvs", 2.0),
            ("wakes", 1.0),
        ];
        let found = costs(sampled.into_iter().map(|(name, cost)| (name, vec![cost])).collect());
        assert!(!found.contains_key("sends"));
    }

    #[test]
    fn one_slow_batch_of_three_changes_nothing() {
        assert_eq!(median(vec![5.0, 900.0, 6.0]), 6.0);
    }
}
