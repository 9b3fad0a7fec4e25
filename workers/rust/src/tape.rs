//! The tape: read whole, checked before it is trusted (docs/tape.md), and its records as operations.
//!
//! A worker plays only a few tapes in its life, so it keeps each until its end: operations borrow from
//! them.

use std::fs;

use crate::generations::{Generations, place};
pub use crate::operation::{KINDS, Kind, Operation, Verb, kind_name};

const MAY_BE_QUIET: &[Verb] = &[
    Verb::SET,
    Verb::ADD,
    Verb::REPLACE,
    Verb::DELETE,
    Verb::TOUCH,
    Verb::MSET,
    Verb::INCR,
    Verb::DECR,
];
const ON_COUNTERS: &[Verb] = &[Verb::DELETE, Verb::INCR, Verb::DECR, Verb::VERSION];
const BATCHES: &[Verb] = &[Verb::MGET, Verb::MSET];
const STEPS: &[Verb] = &[Verb::INCR, Verb::DECR];

const HEADER_BYTES: usize = 184;
const VERSION: u32 = 2;
const COUNTER: &[u8] = b"1000000000";

#[derive(Clone, Copy)]
struct Record {
    verb: Verb,
    quiet: bool,
    run: usize,
    key: usize,
    length: u32,
    exptime_s: u32,
    generation: u8,
}

/// A tape that passed all checks of its format.
pub struct Tape {
    pub times: Option<Vec<u64>>,
    pub period_ns: u64,
    pub prefill_count: usize,
    pub op_count: usize,
    pub verified: bool,
    pub generations: Generations,
    /// Callers think between operations.
    pub thinks: bool,
    pub kinds: Vec<Kind>,
    /// A batch names a key twice.
    pub repeats: bool,
    /// The prefill stores every key.
    pub whole: bool,
    /// Every operation and the prefill store for ever.
    pub never_expires: bool,
    pub group: usize,
    first_counter: usize,
    exptime_s: u32,
    records: Vec<Record>,
    lengths: Vec<u32>,
    keys: Vec<&'static str>,
    numbers: Vec<u32>,
    runs: Vec<u32>,
    run_keys: Vec<&'static str>,
    run_pairs: Vec<(&'static str, &'static [u8])>,
    pool: &'static [u8],
}

/// Why a file is no tape, or no tape for this worker.
pub enum Refusal {
    NoTape(String),
    Unsupported(String),
}

fn check(holds: bool, what: &str, at: usize) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(Refusal::NoTape(format!("the tape has {what} (at byte {at})"))) }
}

fn u32_at(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(data[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(data: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(data[at..at + 8].try_into().expect("8 bytes"))
}

/// The bytes of a section, and where it begins.
fn section(
    data: &'static [u8],
    field: usize,
    count: u64,
    width: u64,
) -> Result<(&'static [u8], usize), Refusal> {
    let at = u64_at(data, field);
    let end = count.checked_mul(width).and_then(|size| size.checked_add(at));
    let inside = at >= HEADER_BYTES as u64
        && at.is_multiple_of(8)
        && end.is_some_and(|end| end <= data.len() as u64);
    check(inside, "a section outside the file", field)?;
    Ok((&data[at as usize..end.unwrap_or(0) as usize], at as usize))
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32_at(word, 0)).collect()
}

impl Tape {
    /// Read a tape; it stays for the life of the process.
    pub fn open(path: &str) -> Result<&'static Tape, Refusal> {
        let data = fs::read(path).map_err(|error| Refusal::NoTape(format!("{path}: {error}")))?;
        let data: &'static [u8] = data.leak();
        let tape: &'static mut Tape = Box::leak(Box::new(Tape::read(data)?));
        tape.run_pairs = (tape.runs.iter())
            .map(|&key| {
                (
                    tape.keys[key as usize],
                    tape.value(key, tape.lengths[key as usize] as usize, 0).expect("checked"),
                )
            })
            .collect();
        Ok(tape)
    }

    fn read(data: &'static [u8]) -> Result<Tape, Refusal> {
        check(data.len() >= HEADER_BYTES, "no header of 184 bytes", 0)?;
        check(&data[..8] == b"CMTAPE\0\0", "no magic", 0)?;
        check(u32_at(data, 8) == VERSION, "another version than 2", 8)?;
        check(u32_at(data, 12) == HEADER_BYTES as u32, "a header of another length", 12)?;
        let field = |at| u64_at(data, at);
        let (key_count, op_count, run_count, pool_bytes) =
            (field(32), field(48), field(56), field(64));
        check(field(16) == data.len() as u64, "another length than it says", 16)?;
        check((1..=u64::from(u32::MAX)).contains(&key_count), "no possible number of keys", 32)?;
        check(field(40) <= key_count, "more keys to store than it has", 40)?;
        check(op_count > 0, "no operations", 48)?;
        check(field(144) <= u64::from(u32::MAX), "no possible expiry time", 144)?;
        check(field(152) & 0xFFFF_FFFE == 0, "unknown flags", 152)?;
        check(field(160) > 0 && op_count % field(160) == 0, "no whole number of groups", 160)?;
        check(field(168) <= key_count, "more counters than keys", 168)?;
        let scheduled = (field(136) > 0) == (field(72) > 0);
        check(scheduled, "times without a period, or a period without times", 72)?;
        check(field(136) == 0 || field(176) == 0, "both times and think times", 176)?;
        let (records, records_at) = section(data, 120, op_count, 16)?;
        let (lengths, lengths_at) = section(data, 104, key_count, 4)?;
        let (runs, runs_at) = section(data, 128, run_count, 4)?;
        let times = if field(136) == 0 { None } else { Some(section(data, 136, op_count, 8)?) };
        if field(176) != 0 {
            section(data, 176, op_count, 8)?;
        }
        let mut tape = Tape {
            thinks: field(176) != 0,
            times: times
                .map(|(bytes, _)| bytes.chunks_exact(8).map(|time| u64_at(time, 0)).collect()),
            period_ns: field(72),
            prefill_count: field(40) as usize,
            op_count: op_count as usize,
            verified: field(152) & 1 == 0,
            generations: Generations::for_lanes(field(152) >> 32),
            kinds: Vec::new(),
            repeats: false,
            whole: field(40) == key_count,
            never_expires: field(144) == 0,
            group: field(160) as usize,
            first_counter: (key_count - field(168)) as usize,
            exptime_s: field(144) as u32,
            records: Vec::with_capacity(op_count as usize),
            lengths: words(lengths),
            keys: read_keys(data, key_count, field(96))?,
            numbers: (0..key_count as u32).collect(),
            runs: words(runs),
            run_keys: Vec::new(),
            run_pairs: Vec::new(),
            pool: section(data, 112, pool_bytes, 1)?.0,
        };
        tape.check_lengths(lengths_at)?;
        check(
            tape.runs.iter().all(|&key| u64::from(key) < key_count),
            "a run of unknown keys",
            runs_at,
        )?;
        for (number, record) in records.chunks_exact(16).enumerate() {
            tape.add_record(record, records_at + 16 * number)?;
        }
        let later = tape
            .times
            .as_ref()
            .is_none_or(|times| times.is_sorted() && times[times.len() - 1] < tape.period_ns);
        check(later, "times out of order", 136)?;
        tape.run_keys = tape.runs.iter().map(|&key| tape.keys[key as usize]).collect();
        Ok(tape)
    }

    fn check_lengths(&self, at: usize) -> Result<(), Refusal> {
        let fit = self.lengths.iter().all(|&length| length as usize <= self.pool.len());
        check(fit, "a length beyond the pool", at)?;
        let counted = self.lengths[self.first_counter..]
            .iter()
            .all(|&length| length as usize == COUNTER.len());
        check(counted, "a counter of another length", at)
    }

    fn add_record(&mut self, bytes: &[u8], at: usize) -> Result<(), Refusal> {
        let (verb, flags) = (Verb(bytes[0]), bytes[1]);
        let (run, key) =
            (usize::from(u16::from_le_bytes([bytes[2], bytes[3]])), u32_at(bytes, 4) as usize);
        let (length, exptime_s) = (u32_at(bytes, 8), u32_at(bytes, 12));
        check(verb.is_known(), "an unknown verb", at)?;
        let (quiet, generation) = (flags & 1 == 1, flags >> 1);
        check(!quiet || verb.is(MAY_BE_QUIET), "bad flags", at)?;
        let known = generation == 0 || self.generations.has(generation, verb);
        check(known, "bad flags", at)?;
        let (batch, keyless, step) = (verb.is(BATCHES), verb == Verb::VERSION, verb.is(STEPS));
        check(if batch { run >= 1 } else { run == usize::from(!keyless) }, "a wrong run", at)?;
        let limit = if batch { self.runs.len() } else { self.keys.len() };
        check(keyless || key + run <= limit, "an unknown key", at)?;
        check(!step || key >= self.first_counter, "a counter's verb on another key", at)?;
        check(step || length as usize <= self.pool.len(), "a length beyond the pool", at)?;
        if !keyless && !verb.is(ON_COUNTERS) {
            let named =
                if batch { &self.runs[key..key + run] } else { &self.numbers[key..key + 1] };
            let plain = named.iter().all(|&key| (key as usize) < self.first_counter);
            check(plain, "a verb on a counter that is not for it", at)?;
        }
        let kind = 2 * usize::from(verb.0) + usize::from(quiet);
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        if batch && run > 1 && !self.repeats {
            let mut named = self.runs[key..key + run].to_vec();
            named.sort_unstable();
            self.repeats = named.windows(2).any(|pair| pair[0] == pair[1]);
        }
        self.never_expires &= exptime_s == 0;
        self.records.push(Record { verb, quiet, run, key, length, exptime_s, generation });
        Ok(())
    }

    /// The value of a key at a length, in a generation.
    pub fn value(&self, key: u32, length: usize, generation: u8) -> Option<&'static [u8]> {
        if length > self.pool.len() {
            return None;
        }
        let from = place(key, length, generation, self.pool.len());
        Some(&self.pool[from..from + length])
    }

    /// Whether a read may bring a value; `told` is the generation in its record.
    pub fn allows(&self, key: u32, value: &[u8], told: u8) -> bool {
        let mut right = self.generations.right(told).iter();
        right.any(|&generation| self.value(key, value.len(), generation) == Some(value))
    }

    /// The length of a key's value in the prefill.
    pub fn length(&self, key: u32) -> usize {
        self.lengths[key as usize] as usize
    }

    /// The operations of a lane, in order.
    pub fn lane(&'static self, lane: usize, lanes: usize) -> Vec<Operation> {
        (lane..self.op_count / self.group)
            .step_by(lanes)
            .flat_map(|group| group * self.group..(group + 1) * self.group)
            .map(|number| self.operation(self.records[number], number))
            .collect()
    }

    /// The write that stores a key in the prefill.
    pub fn prefill(&'static self, key: usize) -> Operation {
        let record = Record {
            verb: Verb::SET,
            quiet: false,
            run: 1,
            key,
            length: self.lengths[key],
            exptime_s: self.exptime_s,
            generation: 0,
        };
        let mut operation = self.operation(record, 0);
        if key >= self.first_counter {
            operation.value = COUNTER;
        }
        operation
    }

    fn operation(&'static self, record: Record, number: usize) -> Operation {
        let Record { verb, run, key, .. } = record;
        let span = if verb == Verb::VERSION { 0..0 } else { key..key + run };
        let batch = verb.is(BATCHES);
        let (keys, indexes) = if batch {
            (&self.run_keys[span.clone()], &self.runs[span.clone()])
        } else {
            (&self.keys[span.clone()], &self.numbers[span.clone()])
        };
        let reads = verb.is(&[Verb::GET, Verb::GETS, Verb::MGET, Verb::GAT, Verb::MSET]);
        let value = match indexes.first() {
            Some(&first) if !verb.is(STEPS) => {
                let length = if reads { self.lengths[first as usize] } else { record.length };
                self.value(first, length as usize, record.generation).expect("checked")
            }
            _ => &[],
        };
        Operation {
            verb,
            kind: 2 * usize::from(verb.0) + usize::from(record.quiet),
            number,
            keys,
            pairs: if verb == Verb::MSET { &self.run_pairs[span] } else { &[] },
            indexes,
            value,
            amount: u64::from(record.length),
            exptime_s: record.exptime_s,
            generation: record.generation,
            key_bytes: keys.iter().map(|key| key.len() as u64).sum(),
        }
    }
}

fn read_keys(data: &'static [u8], count: u64, bytes: u64) -> Result<Vec<&'static str>, Refusal> {
    let (offsets, at) = section(data, 80, count + 1, 4)?;
    let (text, text_at) = section(data, 88, bytes, 1)?;
    let offsets = words(offsets);
    let mut keys = Vec::with_capacity(count as usize);
    for (number, pair) in offsets.windows(2).enumerate() {
        let (from, until) = (pair[0] as usize, pair[1] as usize);
        check(until > from && until - from <= 250, "a key of a wrong length", at + 4 * number)?;
        check(until <= text.len(), "a key outside its table", at + 4 * number)?;
        let key = &text[from..until];
        let clean = key.iter().all(|&byte| byte > 32 && byte != 127);
        check(clean, "a key with white space or a control character", text_at + from)?;
        let key = str::from_utf8(key).map_err(|_| {
            Refusal::Unsupported("keys that are no UTF-8: the libraries take text".into())
        })?;
        keys.push(key);
    }
    Ok(keys)
}
