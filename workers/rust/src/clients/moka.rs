//! moka: a cache inside this process, shared by all threads; it has no server.
//!
//! Keys are `String`, values `Arc<[u8]>`, which a hit returns without a copy. It has no capacity and
//! no expiry, so it refuses tapes with expiry times.

use std::sync::Arc;

use moka::ops::compute::{CompResult, Op};
use moka::sync::Cache;

use crate::client::{Client, Session};
use crate::prepare::Prepare;
use crate::tape::{Operation, Tape, Verb};
use crate::verify::{self, ReplyStatus, Verified};

type Shared = Cache<String, Arc<[u8]>>;

pub struct Moka(Shared);

pub enum Answer {
    Value(Option<Arc<[u8]>>),
    Values(Vec<Option<Arc<[u8]>>>),
    Known(bool),
    Stored(bool),
}

impl Session for Moka {
    const CLIENT: Client = Client {
        library: "moka",
        version: env!("MOKA_VERSION"),
        wires: &["none"],
        features: &["threads", "open_loop"],
        verbs: &[Verb::GET, Verb::MGET, Verb::SET, Verb::ADD, Verb::REPLACE, Verb::DELETE],
        quiet: &[],
        options: &[],
    };
    type Answer = Answer;
    type Error = ();
    type Shared = Shared;

    fn share(_setup: &Prepare) -> Shared {
        Cache::builder().build()
    }

    fn refuse(_setup: &Prepare, tape: &Tape) -> Option<&'static str> {
        (!tape.never_expires).then_some("no expiry times of single entries")
    }

    async fn open(_setup: &Prepare, cache: Shared) -> Result<Moka, String> {
        Ok(Moka(cache))
    }

    async fn call(&mut self, op: &Operation) -> Result<Answer, ()> {
        let cache = &self.0;
        Ok(match op.verb {
            Verb::GET => Answer::Value(cache.get(op.key())),
            Verb::MGET => Answer::Values(op.keys.iter().map(|key| cache.get(*key)).collect()),
            Verb::DELETE => Answer::Known(cache.remove(op.key()).is_some()),
            Verb::ADD => Answer::Stored(
                cache.entry_by_ref(op.key()).or_insert_with(|| op.value.into()).is_fresh(),
            ),
            Verb::REPLACE => {
                let replaced = cache.entry_by_ref(op.key()).and_compute_with(|entry| match entry {
                    Some(_) => Op::Put(op.value.into()),
                    None => Op::Nop,
                });
                Answer::Stored(matches!(replaced, CompResult::ReplacedWith(_)))
            }
            _ => {
                cache.insert(op.key().to_owned(), op.value.into());
                Answer::Stored(true)
            }
        })
    }

    fn verify(tape: &Tape, op: &Operation, answer: &Answer) -> Verified {
        match answer {
            Answer::Value(value) => verify::one(tape, op, value.as_deref()),
            Answer::Values(values) => {
                let found = |(key, value)| -> Option<(&[u8], &[u8])> {
                    let (key, value): (&&'static str, &Option<Arc<[u8]>>) = (key, value);
                    value.as_deref().map(|value| (key.as_bytes(), value))
                };
                verify::many(tape, op, op.keys.iter().zip(values).filter_map(found))
            }
            Answer::Known(there) => verify::known(*there),
            Answer::Stored(stored) => verify::written(op, *stored),
        }
    }

    fn failure(_op: &Operation, (): &()) -> ReplyStatus {
        ReplyStatus::Client
    }
}
