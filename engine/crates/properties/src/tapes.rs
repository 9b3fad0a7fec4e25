//! The tape reader: a damaged tape is refused, or all accessors stay in bounds.

use cachemark_tape::{
    Arrivals, IntegerDistribution, IntegerRange, KeyDistribution, KeyShape, Schedule, Tape,
    Workload, generate, parse_mix,
};

pub const POOL_BYTES: usize = 64;

pub fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize
}

pub fn put(bytes: &mut [u8], at: usize, number: usize) {
    bytes[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
}

/// A tape with all sections, whose pool is cut to 64 bytes so that most damage hits other sections.
pub fn small(timed: bool) -> Vec<u8> {
    let workload = Workload {
        keys: 12,
        distribution: KeyDistribution::Zipf(0.99),
        shape: KeyShape::Length(IntegerRange { low: 2, high: 9 }.into()),
        size: IntegerRange { low: 0, high: 40 }.into(),
        mix: parse_mix("get=5,set=2,mget=1,set_noreply=1,version=1,mset=1,incr=1,cas=1")
            .expect("a mix"),
        run: 6,
        prefill: 0.5,
        exptime_s: IntegerDistribution::fixed(60),
        counters: 2,
        ..Workload::default()
    };
    let schedule = if timed {
        Schedule::Open { arrivals: Arrivals::Uniform, rate: 1000.0, duration_ns: 40_000_000 }
    } else {
        Schedule::closed(40)
    };
    let mut bytes = generate(&workload, &schedule, 1).expect("a workload that can be made");
    let (pool_at, ops_at) = (u64_at(&bytes, 112), u64_at(&bytes, 120));
    let cut = ops_at - pool_at - POOL_BYTES;
    bytes.drain(pool_at + POOL_BYTES..ops_at);
    put(&mut bytes, 64, POOL_BYTES);
    for field in [16, 120, 128, 136] {
        let number = u64_at(&bytes, field);
        put(&mut bytes, field, number.saturating_sub(cut));
    }
    bytes
}

/// Call all accessors of a tape. An index out of bounds would panic.
pub fn read_all(tape: &Tape) {
    assert!(tape.prefill_count() <= tape.key_count());
    for k in 0..tape.key_count() {
        assert!((1..=250).contains(&tape.key(k).len()));
        assert_eq!(tape.value(k, tape.value_length(k)).len() as u32, tape.value_length(k));
    }
    let mut before_ns = 0;
    for j in 0..tape.op_count() {
        let op = tape.op(j);
        for k in tape.run(&op) {
            tape.key(k);
            let length = if k < tape.first_counter() { op.length as usize } else { 10 };
            assert_eq!(tape.value(k, op.length).len(), length);
        }
        if tape.is_open_loop() {
            assert!((before_ns..tape.period_ns()).contains(&tape.due_ns(j)));
            before_ns = tape.due_ns(j);
        }
    }
}

/// Open bytes that may be a tape.
pub fn refused_or_harmless(bytes: &[u8]) {
    match Tape::from_bytes(bytes.to_vec()) {
        Ok(tape) => read_all(&tape),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
