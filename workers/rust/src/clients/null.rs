//! null: no library. It measures the loop's own cost. It remembers nothing:
//! what the prefill stores is there, and nothing else.

use crate::client::{Client, Session};
use crate::prepare::Prepare;
use crate::tape::{Operation, Tape, Verb};
use crate::verify::{self, ReplyStatus, Verified};

/// Answers each read with the right value.
pub struct Null;

const QUIET: &[Verb] = &[
    Verb::SET,
    Verb::ADD,
    Verb::REPLACE,
    Verb::DELETE,
    Verb::TOUCH,
    Verb::MSET,
    Verb::INCR,
    Verb::DECR,
];

impl Session for Null {
    const CLIENT: Client = Client {
        library: "none",
        version: env!("CARGO_PKG_VERSION"),
        wires: &["none"],
        features: &["threads", "open_loop"],
        verbs: &[
            Verb::GET,
            Verb::GETS,
            Verb::MGET,
            Verb::SET,
            Verb::ADD,
            Verb::REPLACE,
            Verb::DELETE,
            Verb::TOUCH,
            Verb::GAT,
            Verb::VERSION,
            Verb::MSET,
            Verb::CAS,
            Verb::INCR,
            Verb::DECR,
        ],
        quiet: QUIET,
        options: &[],
    };
    type Answer = &'static [u8];
    type Error = ();
    type Shared = ();

    fn share(_setup: &Prepare) {}

    async fn open(_setup: &Prepare, (): ()) -> Result<Null, String> {
        Ok(Null)
    }

    async fn call(&mut self, op: &Operation) -> Result<&'static [u8], ()> {
        Ok(op.value)
    }

    fn verify(tape: &Tape, op: &Operation, value: &&'static [u8]) -> Verified {
        let there = |key: u32| (key as usize) < tape.prefill_count;
        let first = op.indexes.first().is_some_and(|&key| there(key));
        match op.verb {
            _ if op.kind % 2 == 1 => verify::written(op, true),
            Verb::GET | Verb::GETS | Verb::GAT => verify::one(tape, op, first.then_some(*value)),
            Verb::MGET => {
                let named = op.keys.iter().zip(op.indexes).filter(|(_, index)| there(**index));
                let found = named.map(|(key, &index)| {
                    let value = tape.value(index, tape.length(index), 0).unwrap_or_default();
                    (key.as_bytes(), value)
                });
                verify::many(tape, op, found)
            }
            Verb::DELETE | Verb::TOUCH | Verb::INCR | Verb::DECR => verify::known(first),
            Verb::CAS => verify::compared(tape, op, first.then_some((op.value, true))),
            Verb::VERSION => Verified::of(ReplyStatus::Done),
            Verb::ADD => verify::written(op, !first),
            Verb::REPLACE => verify::written(op, first),
            _ => verify::written(op, true),
        }
    }

    fn failure(_op: &Operation, (): &()) -> ReplyStatus {
        ReplyStatus::Client
    }
}
