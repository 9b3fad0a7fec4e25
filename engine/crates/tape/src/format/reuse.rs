//! Whether hits depend on earlier operations of a tape.

use super::operation::Verb;
use super::reader::Tape;

/// The part of further operations that may be on keys that the tape does not use. With more, a repeated tape hits
/// visibly more often than new operations would.
const MOST_UNSEEN: f64 = 0.001;

/// How the hits of a tape depend on the operations before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dependence {
    /// No read finds a key at one time and not at another.
    #[default]
    Never,
    /// Some do, and the tape uses practically all keys that it would use if it were longer: repeated, it hits as new
    /// operations would.
    Covered,
    /// Some do, and a longer tape would use more keys: repeated, it finds keys that new operations would not.
    Open,
}

impl Dependence {
    pub fn name(self) -> &'static str {
        match self {
            Dependence::Never => "never",
            Dependence::Covered => "covered",
            Dependence::Open => "open",
        }
    }
}

/// How operations of a tape use the same keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// The keys that operations use.
    pub used_keys: u64,
    /// Whether a read stores a value that it does not find.
    pub fills: bool,
    /// If the server keeps all items.
    pub kept: Dependence,
    /// If the server may evict items, or they expire.
    pub lost: Dependence,
}

/// The uses of a key on a tape.
#[derive(Clone, Copy, Default)]
struct KeyUse {
    count: u32,
    stored: bool,
    removed: bool,
}

impl Tape {
    /// How operations use the same keys, and the consequence for hits.
    ///
    /// The share of operations on a key that no other one uses estimates the part of further operations that would
    /// be on new keys (Good and Turing).
    pub fn reuse(&self) -> Reuse {
        let mut keys = vec![KeyUse::default(); self.key_count() as usize];
        let (mut fills, mut flushes, mut uses) = (false, false, 0_u64);
        for j in 0..self.op_count() {
            let op = self.op(j);
            let stores = matches!(op.verb, Verb::Set | Verb::Add | Verb::Mset | Verb::Fetch);
            flushes |= op.verb == Verb::Flush;
            fills |= op.verb == Verb::Fetch;
            for key in self.run(&op) {
                let of = &mut keys[key as usize];
                of.count = of.count.saturating_add(1);
                of.stored |= stores;
                of.removed |= op.verb == Verb::Delete;
                uses += 1;
            }
        }
        let prefilled = self.prefill_count() as usize;
        let used = || keys.iter().enumerate().filter(|(_, of)| of.count > 0);
        let is_stored = |(key, of): &(usize, &KeyUse)| *key < prefilled || of.stored;
        let changes = |(key, of): &(usize, &KeyUse)| {
            (of.stored && *key >= prefilled) || of.removed || flushes
        };
        let dependence = |of: &dyn Fn(&(usize, &KeyUse)) -> bool| {
            let once = used().filter(of).filter(|(_, of)| of.count == 1).count() as f64;
            match (used().any(|each| of(&each)), used().count() == keys.len()) {
                (false, _) => Dependence::Never,
                (true, true) => Dependence::Covered,
                (true, false) if once <= MOST_UNSEEN * uses as f64 => Dependence::Covered,
                (true, false) => Dependence::Open,
            }
        };
        let stores_or_removes = flushes || used().any(|(_, of)| of.stored || of.removed);
        Reuse {
            used_keys: used().count() as u64,
            fills,
            kept: dependence(&|each| is_stored(each) && changes(each)),
            lost: dependence(&|each| is_stored(each) && stores_or_removes),
        }
    }
}
