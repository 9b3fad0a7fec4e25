//! A tape with every kind of operation, a server, and the counts that playing the tape must give.

use std::collections::BTreeMap;
use std::sync::Arc;

use cachemark_load::{KindMetrics, RunResult};
use cachemark_server::{Endpoint, IoMode, Server, Settings, State, start};
use cachemark_tape::{IntegerRange, KeyShape, Schedule, Tape, Workload, generate, parse_mix};

pub const MEMORY_BYTES: usize = 16 << 20;

/// A tape over sixty keys, with values up to `most_bytes`. Half of the keys are stored by the prefill.
pub fn tape(mix: &str, ops: u64, most_bytes: u32) -> Arc<Tape> {
    let workload = Workload {
        keys: 60,
        shape: KeyShape::Pattern("key-{index}".to_owned()),
        size: IntegerRange { low: 0, high: most_bytes }.into(),
        mix: parse_mix(mix).expect("a mix"),
        run: 7,
        prefill: 0.5,
        counters: 10,
        ..Workload::default()
    };
    let bytes = generate(&workload, &Schedule::closed(ops), 1).expect("a tape");
    Arc::new(Tape::from_bytes(bytes).expect("our own tape"))
}

/// A server on a port that the system chooses.
pub fn server() -> (Server, Arc<State>) {
    let settings = Settings {
        io: IoMode::Events,
        threads: 1,
        memory_bytes: MEMORY_BYTES,
        item_bytes_max: 1 << 20,
        max_connections: 64,
        ..Settings::default()
    };
    let state = Arc::new(State::new(settings, "0"));
    let any = [Endpoint::Tcp("127.0.0.1:0".to_owned())];
    (start(&any, &state).expect("a server"), state)
}

/// Per kind: attempts, ok, hits, misses, not stored, keys, value bytes, key bytes. No operation may
/// have failed.
pub fn counts(result: &RunResult) -> BTreeMap<&'static str, [u64; 8]> {
    let of = |(name, kind): (&'static str, &KindMetrics)| {
        assert_eq!(kind.failed(), 0, "{name}: {:?}, {} wrong", kind.errors, kind.wrong_values);
        assert_eq!(kind.response.len(), kind.ok, "{name}");
        let counts = [kind.attempts, kind.ok, kind.hits, kind.misses, kind.not_stored];
        let [a, b, c, d, e] = counts;
        (name, [a, b, c, d, e, kind.keys, kind.value_bytes, kind.key_bytes])
    };
    result.metrics.kinds().map(of).collect()
}
