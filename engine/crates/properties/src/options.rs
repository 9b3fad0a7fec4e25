//! The command line of `drive`: refused in words, or a workload of which there is a tape.

use cachemark_engine::drive::Arguments;
use cachemark_tape::{Order, Schedule, Tape, Workload, generate};

use crate::tapes::read_all;

/// What is larger is not made here.
const OPS_MOST: f64 = 2000.0;
const KEYS_MOST: u32 = 500;
const RUN_MOST: u32 = 50;
const BYTES_MOST: u32 = 1 << 20;

/// Read words, one on each line, and make the tape they ask for.
pub fn refused_or_made(text: &str) {
    let words: Vec<&str> = ["--server", "127.0.0.1:1"].into_iter().chain(text.lines()).collect();
    let plan = match Arguments::parse_words(&words) {
        Ok(arguments) => arguments.plan(),
        Err(refused) => return assert!(!refused.is_empty()),
    };
    match plan {
        Err(refused) => one_sentence(&refused),
        Ok((workload, schedule)) if is_small(&workload, &schedule) => {
            match generate(&workload, &schedule, 1) {
                Err(refused) => one_sentence(&refused.0),
                Ok(bytes) => read_all(&Tape::from_bytes(bytes).expect("its own tape")),
            }
        }
        Ok(_) => {}
    }
}

fn one_sentence(refused: &str) {
    assert!(!refused.is_empty() && !refused.contains('\n'), "{refused:?}");
}

fn is_small(workload: &Workload, schedule: &Schedule) -> bool {
    let ops = match *schedule {
        Schedule::Closed { ops, .. } => ops as f64,
        Schedule::Open { rate, duration_ns, .. } => rate * duration_ns as f64 / 1e9,
    };
    let steps = match &workload.order {
        Order::Sequence { steps, .. } => steps.len(),
        _ => 0,
    };
    ops <= OPS_MOST
        && steps <= 100
        && workload.keys <= KEYS_MOST
        && workload.max_run() <= RUN_MOST
        && workload.max_size() <= BYTES_MOST
}
