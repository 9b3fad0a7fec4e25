//! Decodes bytes into calls of the store. Any bytes are valid, and changing a byte mostly changes one call.

use cachemark_storage::Mode;

use crate::NOW_S;
use crate::store::{Action, Use, Verb};

/// The bytes that are left; 0 once there are none.
struct ByteSource<'a>(&'a [u8]);

impl ByteSource<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn exptime(&mut self) -> i64 {
        match self.byte() {
            0..=99 => 0,
            100 => -1,
            // An instant: in the past, or some seconds after the start.
            byte @ 101..=150 => i64::from(NOW_S) + i64::from(byte) - 110,
            byte => i64::from(byte) - 150,
        }
    }

    /// A number as text, possibly with spaces, or up to `bytes_max` other bytes.
    fn value(&mut self, bytes_max: usize) -> Vec<u8> {
        match self.byte() {
            0..=79 => self.number().to_string().into_bytes(),
            80..=89 => u64::MAX.to_string().into_bytes(),
            90..=99 => format!(" {}  ", self.byte()).into_bytes(),
            byte => vec![byte; usize::from(self.number()) % (bytes_max + 1)],
        }
    }

    fn verb(&mut self, bytes_max: usize) -> Verb {
        const MODES: [Mode; 5] = [Mode::Set, Mode::Add, Mode::Replace, Mode::Append, Mode::Prepend];
        match self.byte() {
            byte @ 0..=99 => {
                let mode = MODES[usize::from(byte) % MODES.len()];
                let flags = u32::from(self.byte()) << 24;
                Verb::Store(mode, flags, self.exptime(), self.value(bytes_max))
            }
            byte @ 100..=129 => Verb::CompareAndSwap(byte < 120, self.value(bytes_max)),
            130..=159 => Verb::Get,
            160..=169 => Verb::GetAndTouch(self.exptime()),
            170..=189 => Verb::Delete,
            byte @ 190..=214 => Verb::Arithmetic(u64::from(self.number()), byte < 205),
            215..=224 => Verb::Touch(self.exptime()),
            225..=229 => Verb::Flush(i64::from(self.byte() % 4) - 1),
            byte => Verb::Wait(u32::from(byte) % 3),
        }
    }
}

/// Calls on this number of keys, with values of at most `bytes_max` bytes.
pub fn actions(bytes: &[u8], keys: u8, bytes_max: usize) -> Vec<Action> {
    let mut source = ByteSource(bytes);
    let mut actions = Vec::new();
    while !source.0.is_empty() {
        actions.push(Action { key: source.byte() % keys, verb: source.verb(bytes_max) });
    }
    actions
}

/// Uses of 400 keys with values of up to 3000 bytes.
pub fn uses(bytes: &[u8]) -> Vec<Use> {
    let mut source = ByteSource(bytes);
    let mut uses = Vec::new();
    while !source.0.is_empty() {
        uses.push((source.number() % 400, usize::from(source.number()) % 3000, source.byte() % 10));
    }
    uses
}
