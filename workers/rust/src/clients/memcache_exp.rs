//! memcache-exp: the experimental client of the memcache crate (`memcache::exp`), on the meta wire.
//!
//! Driven is its protocol layer, `MetaClient`: the layer above it keeps from its callers whether a
//! delete found something, and stores no empty values. It does not tell when it connects again.

use memcache::exp::{
    Arithmetic, ArithmeticResult, Error, Get, GetResult, GetStatus, Meta, MetaClient, MutationResult, MutationStatus, Set,
};

use crate::client::{Client, Session, Setup};
use crate::judge::{self, Ending, Verdict};
use crate::tape::{Operation, Tape, Verb};

pub struct MemcacheExp(MetaClient);

pub enum Answer {
    Read(GetResult),
    Reads(Vec<GetResult>),
    Touched(GetResult),
    Changed(MutationResult),
    Stored(bool),
    Stepped(ArithmeticResult),
    Compared(Option<(Vec<u8>, bool)>),
}

impl Session for MemcacheExp {
    const CLIENT: Client = Client {
        name: "memcache-exp",
        library: "memcache",
        version: env!("MEMCACHE_VERSION"),
        wires: &["meta"],
        features: &["threads", "open_loop", "cluster"],
        verbs: &[
            Verb::GET, Verb::GETS, Verb::MGET, Verb::SET, Verb::ADD, Verb::REPLACE, Verb::DELETE, Verb::TOUCH,
            Verb::GAT, Verb::MSET, Verb::CAS, Verb::INCR, Verb::DECR,
        ],
        quiet: &[],
        options: &[("profile", &["common", "defaults"]), ("hashing", &["default"])],
        in_process: false,
    };
    type Answer = Answer;
    type Error = Error;
    type Shared = ();

    fn share(_setup: &Setup) {}

    async fn open(setup: &Setup, (): ()) -> Result<MemcacheExp, String> {
        let mut builder = MetaClient::builder();
        if setup.common() {
            builder = builder.connect_timeout(Some(setup.timeout())).io_timeout(Some(setup.timeout())).max_idle(1);
        }
        let unreachable = |error: Error| format!("{}: {error}", setup.servers[0]);
        let client = builder.connect_multiple(&setup.servers).map_err(unreachable)?;
        client.noop().map_err(unreachable)?;
        Ok(MemcacheExp(client))
    }

    async fn call(&mut self, op: &Operation) -> Result<Answer, Error> {
        let client = &self.0;
        let set = || client.set(op.key(), op.value).ttl_raw(op.exptime_s);
        match op.verb {
            Verb::GET => client.get(op.key()).send().map(Answer::Read),
            Verb::GETS => client.get(op.key()).meta(Meta::NONE.cas()).send().map(Answer::Read),
            Verb::GAT => client.get(op.key()).touch_raw(op.exptime_s).send().map(Answer::Read),
            Verb::TOUCH => client.get(op.key()).touch_raw(op.exptime_s).without_value().send().map(Answer::Touched),
            Verb::MGET => {
                let results = client.run_many(op.keys.iter().map(Get::new))?;
                results.into_iter().collect::<Result<_, _>>().map(Answer::Reads)
            }
            Verb::MSET => {
                let sets = op.pairs.iter().map(|(key, value)| Set::new(key, value).ttl_raw(op.exptime_s));
                let results: Result<Vec<_>, _> = client.run_many(sets)?.into_iter().collect();
                results.map(|results| Answer::Stored(results.iter().all(MutationResult::applied)))
            }
            Verb::SET => set().send().map(Answer::Changed),
            Verb::ADD => set().add().send().map(Answer::Changed),
            Verb::REPLACE => set().replace().send().map(Answer::Changed),
            Verb::DELETE => client.delete(op.key()).send().map(Answer::Changed),
            Verb::CAS => compare(client, op).map(Answer::Compared),
            Verb::INCR => client.run(Arithmetic::increment(op.key()).delta(op.amount)).map(Answer::Stepped),
            _ => client.run(Arithmetic::decrement(op.key()).delta(op.amount)).map(Answer::Stepped),
        }
    }

    fn judge(tape: &Tape, op: &Operation, answer: &Answer) -> Verdict {
        match answer {
            Answer::Read(result) => judge::one(tape, op, value(result)),
            Answer::Reads(results) => {
                let found = |result| value(result).map(|value| (&result.key[..], value));
                judge::many(tape, op, results.iter().filter_map(found))
            }
            Answer::Touched(result) => judge::known(result.status == GetStatus::Hit),
            Answer::Changed(result) if op.verb == Verb::DELETE => judge::known(result.applied()),
            Answer::Changed(result) => judge::written(op, result.applied()),
            Answer::Stored(all) => judge::written(op, *all),
            Answer::Stepped(result) => judge::known(result.status != MutationStatus::NotFound),
            Answer::Compared(read) => {
                judge::compared(tape, op, read.as_ref().map(|(value, stored)| (&value[..], *stored)))
            }
        }
    }

    fn failure(op: &Operation, error: &Error) -> Ending {
        match error {
            Error::Ambiguous { source, .. } => Self::failure(op, source),
            Error::Timeout { .. } => Ending::Timeout,
            Error::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => Ending::Timeout,
            Error::Io(_) => Ending::Connection,
            Error::Protocol(_) => Ending::Protocol,
            Error::Server(_) => Ending::Server,
            _ => Ending::Client,
        }
    }
}

fn value(result: &GetResult) -> Option<&[u8]> {
    (result.status == GetStatus::Hit).then(|| result.value.as_deref().unwrap_or_default())
}

/// A value and its token, then the new value if the token still holds.
fn compare(client: &MetaClient, op: &Operation) -> Result<Option<(Vec<u8>, bool)>, Error> {
    let read = client.get(op.key()).meta(Meta::NONE.cas()).send()?;
    let (GetStatus::Hit, Some(value), Some(token)) = (read.status, read.value, read.item.cas) else { return Ok(None) };
    let stored = client.set(op.key(), op.value).ttl_raw(op.exptime_s).compare_cas(token).send()?.applied();
    Ok(Some((value, stored)))
}
