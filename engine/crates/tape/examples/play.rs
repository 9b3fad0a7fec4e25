//! One caller plays a tape on a map, and checks every byte: `cargo run --example play`.
// An example may stop with a panic if stdout is closed.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::error::Error;

use cachemark_tape::{Lane, Schedule, Tape, Verb, Workload, generate, parse_mix};

fn main() -> Result<(), Box<dyn Error>> {
    let workload = Workload { keys: 1_000, mix: parse_mix("get=9,set=1")?, ..Workload::default() };
    let tape = Tape::from_bytes(generate(&workload, &Schedule::closed(100_000), 1)?)?;
    let mut lane = Lane::new(0, 1, tape.op_count(), tape.group()).ok_or("no operations")?;
    let mut cache: HashMap<u32, &[u8]> = HashMap::new();
    let (mut hits, mut misses, mut sets) = (0, 0, 0);
    for _ in 0..tape.op_count() {
        let (record, _pass) = lane.next_record();
        let op = tape.op(record);
        match (op.verb, cache.get(&op.key)) {
            (Verb::Set, _) => {
                cache.insert(op.key, tape.value(op.key, op.length));
                sets += 1;
            }
            (Verb::Get, Some(value)) => {
                assert_eq!(*value, tape.value(op.key, tape.value_length(op.key)));
                hits += 1;
            }
            (Verb::Get, None) => misses += 1,
            (other, _) => return Err(format!("the mix has no {}", other.name()).into()),
        }
    }
    println!("{sets} sets, {hits} hits, {misses} misses of {} keys", tape.key_count());
    assert_eq!(sets + hits + misses, tape.op_count());
    Ok(())
}
