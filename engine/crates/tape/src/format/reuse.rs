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
    /// Whether the operation before has stored the key, or deleted it; unknown at the tape's start.
    state: Known,
    /// The result of all reads so far: unknown before the first.
    reads: Known,
    /// Whether the results of reads may differ.
    differs: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Known {
    #[default]
    Unknown,
    Absent,
    Present,
}

impl KeyUse {
    fn note(&mut self, verb: Verb) {
        self.count = self.count.saturating_add(1);
        let stores = matches!(verb, Verb::Set | Verb::Add | Verb::Mset | Verb::Fetch);
        self.stored |= stores;
        self.removed |= verb == Verb::Delete;
        if !matches!(verb, Verb::Set | Verb::Add | Verb::Mset | Verb::Delete) {
            let first = self.reads == Known::Unknown;
            self.differs |= self.state == Known::Unknown || !(first || self.reads == self.state);
            self.reads = self.state;
        }
        if stores {
            self.state = Known::Present;
        } else if verb == Verb::Delete {
            self.state = Known::Absent;
        }
    }

    /// Whether all reads have this result, since the operations before them on the tape leave no other.
    fn always(&self, result: Known) -> bool {
        !self.differs && self.reads == result
    }
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
            flushes |= op.verb == Verb::Flush;
            fills |= op.verb == Verb::Fetch;
            for key in self.run(&op) {
                keys[key as usize].note(op.verb);
                uses += 1;
            }
        }
        let prefilled = self.prefill_count() as usize;
        let used = || keys.iter().enumerate().filter(|(_, of)| of.count > 0);
        let may_hit = |(key, of): &(usize, &KeyUse)| {
            (*key < prefilled || of.stored) && (flushes || !of.always(Known::Absent))
        };
        let changes = |(key, of): &(usize, &KeyUse)| {
            let differs = (of.stored && *key >= prefilled) || of.removed;
            flushes || (differs && !of.always(Known::Present))
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
            kept: dependence(&|each| may_hit(each) && changes(each)),
            lost: dependence(&|each| may_hit(each) && stores_or_removes),
        }
    }
}
