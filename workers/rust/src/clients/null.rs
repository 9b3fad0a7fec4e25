//! null: no library at all. What is measured with it is the loop's own cost.

use crate::client::{Client, Session, Setup};
use crate::judge::{self, Ending, Verdict};
use crate::tape::{Operation, Tape, Verb};

/// Answers each read with what it has to bring, and does nothing else.
pub struct Null;

const QUIET: &[Verb] = &[
    Verb::SET, Verb::ADD, Verb::REPLACE, Verb::DELETE, Verb::TOUCH, Verb::MSET, Verb::INCR, Verb::DECR,
];

impl Session for Null {
    const CLIENT: Client = Client {
        name: "null",
        library: "none",
        version: env!("CARGO_PKG_VERSION"),
        wires: &["none"],
        features: &["threads", "open_loop"],
        verbs: &[
            Verb::GET, Verb::GETS, Verb::MGET, Verb::SET, Verb::ADD, Verb::REPLACE, Verb::DELETE, Verb::TOUCH,
            Verb::GAT, Verb::VERSION, Verb::MSET, Verb::CAS, Verb::INCR, Verb::DECR,
        ],
        quiet: QUIET,
        options: &[],
        in_process: true,
    };
    type Answer = &'static [u8];
    type Error = ();
    type Shared = ();

    fn share(_setup: &Setup) {}

    async fn open(_setup: &Setup, (): ()) -> Result<Null, String> {
        Ok(Null)
    }

    async fn call(&mut self, op: &Operation) -> Result<&'static [u8], ()> {
        Ok(op.value)
    }

    fn judge(tape: &Tape, op: &Operation, value: &&'static [u8]) -> Verdict {
        match op.verb {
            Verb::GET | Verb::GETS | Verb::GAT => judge::one(tape, op, Some(value)),
            Verb::MGET => {
                let found = |(place, key): (usize, &&'static str)| {
                    let length = tape.length(op.indexes[place]);
                    (key.as_bytes(), tape.value(op.indexes[place], length).unwrap_or_default())
                };
                judge::many(tape, op, op.keys.iter().enumerate().map(found))
            }
            Verb::DELETE | Verb::TOUCH | Verb::INCR | Verb::DECR => judge::known(true),
            Verb::CAS => judge::compared(tape, op, Some((op.value, true))),
            Verb::VERSION => Verdict::of(Ending::Done),
            _ => judge::written(op, true),
        }
    }

    fn failure(_op: &Operation, (): &()) -> Ending {
        Ending::Client
    }
}
