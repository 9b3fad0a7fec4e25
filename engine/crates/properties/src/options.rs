//! The command line of `drive`: refused with a message, or a workload with a valid tape.

use cachemark_engine::drive::Arguments;
use cachemark_tape::{Order, Schedule, Tape, Workload, generate};

use crate::tapes::read_all;

/// Larger tapes are not generated here.
const OPS_MAX: f64 = 2000.0;
const KEYS_MAX: u32 = 500;
const RUN_MAX: u32 = 50;
const BYTES_MAX: u32 = 1 << 20;

/// Parse words, one on each line, and generate the tape.
pub fn refused_or_a_tape(text: &str) {
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
    ops <= OPS_MAX
        && steps <= 100
        && workload.keys <= KEYS_MAX
        && workload.max_run() <= RUN_MAX
        && workload.max_size() <= BYTES_MAX
}
