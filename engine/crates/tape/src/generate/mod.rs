//! Makes the bytes of a tape from a workload and a schedule. Pure: the same input and seed give the
//! same bytes.

mod keys;
mod operations;
mod recording;
mod sections;

use keys::KeyWriter;
use operations::write_ops;
pub use recording::{Recording, ReplaySchedule};
use sections::{MAX_TAPE_BYTES, TapeSections, write_pool};

use crate::format::{COUNTER_START, Header, MAX_KEY_BYTES};
use crate::random::mix;
use crate::workload::{
    KeyShape, MAX_SIZE, Schedule, Think, Workload, WorkloadError, invalid, part_of,
};

/// Make the tape of a workload and a schedule.
pub fn generate(
    workload: &Workload,
    schedule: &Schedule,
    seed: u64,
) -> Result<Vec<u8>, WorkloadError> {
    workload.check()?;
    schedule.check()?;
    check_bytes(workload, schedule)?;
    let first_keys = workload.first_keys();
    let length = |key| length_of(key, workload, &first_keys, seed);
    let lengths: Vec<u32> = (0..workload.keys).map(length).collect();
    let (key_offsets, key_bytes) = write_keys(workload, &first_keys, seed)?;
    let (mut times, period_ns, op_count) = schedule.times(seed);
    let group = workload.order.group();
    let op_count = round_to_groups(op_count, group, times.is_some())?;
    if let Some(times) = &mut times {
        times.truncate(op_count as usize);
    }
    let keys_in_runs = op_count.saturating_mul(u64::from(workload.max_run()));
    if keys_in_runs > u64::from(u32::MAX) && workload.has_runs() {
        return invalid(
            "--ops × --run is more than 4e9 keys: use fewer operations or shorter runs",
        );
    }
    let (ops, runs) = write_ops(workload, &lengths, op_count, seed)?;
    let pool = write_pool(workload.max_size(), workload.compressibility, seed);
    let thinks = schedule.think_times(op_count, seed);
    let header = Header {
        seed,
        prefill_count: u64::from(workload.prefill_count()),
        period_ns,
        exptime_s: u64::from(workload.max_exptime_s()),
        group,
        counter_count: u64::from(workload.counters),
        ..Header::default()
    };
    Ok(TapeSections { key_offsets, key_bytes, lengths, pool, ops, runs, times, thinks }
        .assemble(header))
}

/// Refuse a tape that may not fit into memory, before any of it is made.
fn check_bytes(workload: &Workload, schedule: &Schedule) -> Result<(), WorkloadError> {
    let bytes_per_op = match *schedule {
        Schedule::Closed { think: Think::None, .. } => 16.0,
        _ => 24.0,
    };
    let run_bytes = if workload.has_runs() { f64::from(workload.max_run()) * 4.0 } else { 0.0 };
    let key_bytes = match &workload.shape {
        KeyShape::Length(distribution) => distribution.max_value(MAX_KEY_BYTES as u32) as usize,
        KeyShape::Pattern(text) => text.len(),
        KeyShape::Names(names) => names.iter().map(String::len).max().unwrap_or(0),
    };
    let bytes = f64::from(workload.keys) * (key_bytes as f64 + 8.0)
        + schedule.expected_ops() * (bytes_per_op + run_bytes)
        + f64::from(workload.max_size());
    if bytes > MAX_TAPE_BYTES {
        return invalid(format!(
            "a tape of about {:.0} GiB is too large, the limit is 4: lower --keys, --run, --ops or \
             --rate × --duration (a worker at the end of a tape begins it again)",
            bytes / f64::from(1 << 30)
        ));
    }
    Ok(())
}

/// A tape consists of whole groups: a schedule is cut to whole groups, a requested number is rounded
/// up.
fn round_to_groups(op_count: u64, group: u64, scheduled: bool) -> Result<u64, WorkloadError> {
    let whole = if scheduled { op_count / group * group } else { op_count.next_multiple_of(group) };
    if whole == 0 {
        return invalid(format!(
            "--sequence has {group} operations, but the schedule only {op_count}"
        ));
    }
    Ok(whole)
}

/// The value size of a key: a function of key and seed.
fn length_of(key: u32, workload: &Workload, first_keys: &[u32], seed: u64) -> u32 {
    if key >= workload.keys - workload.counters {
        return COUNTER_START.len() as u32;
    }
    let size = workload.size.of_part(part_of(key, first_keys));
    size.draw(mix(mix(seed).wrapping_add(u64::from(key))), MAX_SIZE)
}

fn write_keys(
    workload: &Workload,
    first_keys: &[u32],
    seed: u64,
) -> Result<(Vec<u32>, Vec<u8>), WorkloadError> {
    let writer = KeyWriter::new(&workload.shape, workload.keys, first_keys, seed)?;
    let mut offsets = vec![0];
    let mut bytes = Vec::new();
    for index in 0..workload.keys {
        writer.write(index, &mut bytes);
        let Ok(end) = u32::try_from(bytes.len()) else {
            return invalid("the keys need more than 4 GiB: use fewer or shorter keys");
        };
        offsets.push(end);
    }
    Ok((offsets, bytes))
}
