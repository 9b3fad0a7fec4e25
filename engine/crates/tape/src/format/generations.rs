//! Writes of a share of the keys get values of other generations, and the reads behind them tell which they have to
//! bring: so a server that loses a write, or answers with an older value, is seen. docs/tape.md says how.

use std::collections::HashMap;

use super::lane::Lane;
use super::layout::{GENERATION_LANES_SHIFT, GENERATION_SHIFT, Header, OP_BYTES};
use super::operation::{Op, Verb};
use super::reader::{Bytes, Tape};

/// One key in this number has generations.
const SHARE: u32 = 8;
/// Where the header has its flags.
const FLAGS_AT: usize = 152;

impl Tape {
    /// The tape with generations for `lanes` lanes. One on which no key can have them stays as it is.
    ///
    /// A key can have them if nothing but `set` stores it after the prefill. `owned`: one lane owns each
    /// key; if not, all lanes write generation 1, as others may do that play the same tape on the same server.
    pub fn with_generations(self, lanes: u32, owned: bool) -> Tape {
        let able = Able::on(&self);
        let mut generations = vec![0; self.op_count() as usize];
        let all = u64::from(lanes);
        for number in 0..all {
            let mut last = HashMap::new();
            let lane = Lane::new(number, all, self.op_count(), self.group());
            for j in lane.into_iter().flat_map(Lane::one_pass) {
                let op = self.op(j);
                if let Some(k) = self.told_key(&op).filter(|k| able.has(*k)) {
                    let owns = owned && u64::from(k / SHARE) % all == number;
                    generations[j as usize] = told(&op, k, owns, &mut last);
                }
            }
        }
        if generations.iter().all(|generation| *generation == 0) {
            return self;
        }
        let Header { ops_at, flags, .. } = self.header;
        let mut bytes = match self.bytes {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(map) => map.to_vec(),
        };
        let records = bytes[ops_at as usize..].chunks_exact_mut(OP_BYTES);
        for (record, generation) in records.zip(generations) {
            record[1] |= generation << GENERATION_SHIFT;
        }
        let flags = flags | all << GENERATION_LANES_SHIFT;
        bytes[FLAGS_AT..FLAGS_AT + 8].copy_from_slice(&flags.to_le_bytes());
        Tape::from_bytes(bytes).expect("a tape that was right, with generations")
    }

    /// The key of which a record tells the generation: of an `mget` the first one. None if the run names it twice, as
    /// many libraries keep one answer for both.
    fn told_key(&self, op: &Op) -> Option<u32> {
        let mut run = self.run(op);
        let first = run.next().filter(|_| op.verb.has_generation())?;
        run.all(|k| k != first).then_some(first)
    }

    /// The whole file.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }
}

/// The generation of key `k` in a record of a lane; `last` has that of the lane's last write of each key.
///
/// One lane alone writes generations 2 and 3 of a key, in turn, and all others generation 1. So a read in that lane
/// behind its own write brings the generation of that write, or 1; and in another lane anything but 0.
fn told(op: &Op, k: u32, owns: bool, last: &mut HashMap<u32, u8>) -> u8 {
    if op.verb != Verb::Set {
        return last.get(&k).copied().unwrap_or(0);
    }
    let next = match last.get(&k) {
        _ if !owns => 1,
        Some(2) => 3,
        _ => 2,
    };
    last.insert(k, next);
    next
}

/// The keys that can have generations.
struct Able {
    keys: Vec<bool>,
}

impl Able {
    fn on(tape: &Tape) -> Able {
        let verifies = tape.verifies_values();
        let counter = |k: u32| k >= tape.first_counter();
        let share = (0..tape.key_count()).step_by(SHARE as usize);
        let mut keys: Vec<bool> = share.map(|k| verifies && !counter(k)).collect();
        for op in (0..tape.op_count()).map(|j| tape.op(j)) {
            let otherwise = op.verb.writes() && op.verb != Verb::Set;
            for k in tape.run(&op).filter(|k| otherwise && k.is_multiple_of(SHARE)) {
                keys[(k / SHARE) as usize] = false;
            }
        }
        Able { keys }
    }

    fn has(&self, k: u32) -> bool {
        k.is_multiple_of(SHARE) && self.keys[(k / SHARE) as usize]
    }
}
