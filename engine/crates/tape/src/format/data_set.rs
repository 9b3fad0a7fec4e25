//! The data that a tape stores in a server.

use super::operation::Verb;
use super::reader::Tape;

/// The items that a server holds at most when the tape was played: if nothing is deleted or expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataSet {
    pub items: u64,
    /// The keys of the items.
    pub key_bytes: u64,
    /// Their largest values.
    pub value_bytes: u64,
}

impl Tape {
    /// The items that the prefill and the operations store.
    pub fn data_set(&self) -> DataSet {
        let mut largest: Vec<Option<u32>> = vec![None; self.key_count() as usize];
        let mut store = |key: u32, length: u32| {
            let known = &mut largest[key as usize];
            *known = Some(known.map_or(length, |before| before.max(length)));
        };
        for key in 0..self.prefill_count() {
            store(key, self.value_length(key));
        }
        for j in 0..self.op_count() {
            let op = self.op(j);
            match op.verb {
                Verb::Mset => self.run(&op).for_each(|key| store(key, self.value_length(key))),
                Verb::Set | Verb::Add | Verb::Fetch => store(op.key, op.length),
                _ => {}
            }
        }
        // Replace and cas change only existing items, perhaps to a longer value.
        for j in 0..self.op_count() {
            let op = self.op(j);
            if matches!(op.verb, Verb::Replace | Verb::Cas)
                && let Some(known) = &mut largest[op.key as usize]
            {
                *known = op.length.max(*known);
            }
        }
        let mut data = DataSet::default();
        for (key, length) in (0_u32..).zip(&largest) {
            if let Some(length) = length {
                data.items += 1;
                data.key_bytes += self.key(key).len() as u64;
                data.value_bytes += u64::from(*length);
            }
        }
        data
    }
}
