//! The traffic of each followed key to its server.

use std::collections::HashMap;

use cachemark_miss_ratio::{
    Choice, NO_SIZE, Operation, Population, Request, SlabClasses, item_bytes,
};
use foldhash::fast::FixedState;

/// Bytes of a request or a reply besides key and value, as in `get KEY` and `VALUE KEY 0 100 … END`.
const COMMAND_BYTES: f64 = 8.0;
const REPLY_BYTES: f64 = 24.0;

/// A key, with the keys that it stands for: all of them together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyTraffic {
    pub key: Vec<u8>,
    /// How many keys it stands for.
    pub keys: f64,
    pub requests: f64,
    pub received_bytes: f64,
    pub sent_bytes: f64,
    /// The memory of its item in a server; 0 if no size is known.
    pub charged_bytes: f64,
}

/// Collects it, from the requests of a trace.
pub struct Traffic {
    choice: Choice,
    slabs: SlabClasses,
    numbers: HashMap<u64, usize, FixedState>,
    keys: Vec<KeyTraffic>,
    /// The size of the value of each key.
    sizes: Vec<u32>,
    /// Keys of which only a sample is in the trace.
    sampled: f64,
}

impl Traffic {
    /// Follow this part of the keys, and the hottest. The trace has one key of `sampled`.
    pub fn new(part: f64, population: &Population, sampled: u32) -> Traffic {
        Traffic {
            choice: Choice::new(part, &population.hot, &population.requests_at),
            slabs: SlabClasses::default(),
            numbers: HashMap::default(),
            keys: Vec::new(),
            sizes: Vec::new(),
            sampled: f64::from(sampled),
        }
    }

    pub fn add(&mut self, request: &Request, key: &[u8]) {
        let Some(stand) = self.choice.follows(request.hash) else { return };
        let weight = self.sampled * stand.keys();
        let number = *self.numbers.entry(request.hash).or_insert_with(|| {
            self.keys.push(KeyTraffic { key: key.to_vec(), keys: weight, ..KeyTraffic::default() });
            self.sizes.push(NO_SIZE);
            self.keys.len() - 1
        });
        let (of, size) = (&mut self.keys[number], &mut self.sizes[number]);
        let is_found = request.succeeded != Some(false);
        if request.value_bytes != NO_SIZE && is_found {
            *size = request.value_bytes;
            let bytes = item_bytes(request.key_bytes, request.value_bytes);
            of.charged_bytes = self.slabs.charged_bytes(bytes).map_or(0.0, f64::from) * weight;
        }
        let value = if *size == NO_SIZE { 0.0 } else { f64::from(*size) };
        let (asks, key_bytes) = (request.operation == Operation::Get, f64::from(request.key_bytes));
        let stores = matches!(
            request.operation,
            Operation::Set | Operation::Update | Operation::Add | Operation::Replace
        );
        of.requests += weight;
        of.received_bytes +=
            weight * (COMMAND_BYTES + key_bytes + if stores { value } else { 0.0 });
        let reply = if asks && is_found { REPLY_BYTES + key_bytes + value } else { COMMAND_BYTES };
        of.sent_bytes += weight * reply;
    }

    pub fn keys(self) -> Vec<KeyTraffic> {
        self.keys
    }
}
