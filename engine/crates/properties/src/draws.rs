//! Bytes as calls of the store: any bytes are some, and most changes of a byte change one of them.

use cachemark_storage::Mode;

use crate::session::NOW_S;
use crate::store::{Action, Use, Verb};

/// Bytes that are drawn from the front; 0 once there are none.
struct Draws<'a>(&'a [u8]);

impl Draws<'_> {
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
            // An instant: already past, or seconds ahead of the beginning.
            byte @ 101..=150 => i64::from(NOW_S) + i64::from(byte) - 110,
            byte => i64::from(byte) - 150,
        }
    }

    /// A number as text, with spaces perhaps, or up to `most` bytes that are not.
    fn value(&mut self, most: usize) -> Vec<u8> {
        match self.byte() {
            0..=79 => self.number().to_string().into_bytes(),
            80..=89 => u64::MAX.to_string().into_bytes(),
            90..=99 => format!(" {}  ", self.byte()).into_bytes(),
            byte => vec![byte; usize::from(self.number()) % (most + 1)],
        }
    }

    fn verb(&mut self, most: usize) -> Verb {
        const MODES: [Mode; 5] = [Mode::Set, Mode::Add, Mode::Replace, Mode::Append, Mode::Prepend];
        match self.byte() {
            byte @ 0..=99 => {
                let mode = MODES[usize::from(byte) % MODES.len()];
                let flags = u32::from(self.byte()) << 24;
                Verb::Store(mode, flags, self.exptime(), self.value(most))
            }
            byte @ 100..=129 => Verb::Swap(byte < 120, self.value(most)),
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

/// Calls on so many keys, with values of at most so many bytes.
pub fn actions(bytes: &[u8], keys: u8, most: usize) -> Vec<Action> {
    let mut draws = Draws(bytes);
    let mut actions = Vec::new();
    while !draws.0.is_empty() {
        actions.push(Action { key: draws.byte() % keys, verb: draws.verb(most) });
    }
    actions
}

/// Uses of 400 keys with values of up to 3000 bytes.
pub fn uses(bytes: &[u8]) -> Vec<Use> {
    let mut draws = Draws(bytes);
    let mut uses = Vec::new();
    while !draws.0.is_empty() {
        uses.push((draws.number() % 400, usize::from(draws.number()) % 3000, draws.byte() % 10));
    }
    uses
}
