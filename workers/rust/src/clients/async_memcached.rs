//! async-memcached: a connection and a Tokio executor of its own for each thread; meta or text.
//!
//! It has no time-outs: in the profile `common` this file gives up each call after the trial's
//! time-out, in `defaults` it gives up none. A client whose call was given up or cut off stays closed
//! for ever, so the next operation begins with a new client, as in a program; these are the
//! reconnects. The text protocol of the library has no `gets`, `replace`, `touch`, `gat` and `cas`,
//! the meta protocol no writes without a reply.

use std::future::Future;
use std::time::Duration;

use async_memcached::{
    AsciiProtocol, Client as Library, Error, ErrorKind, MetaProtocol, MetaValue, Status, Value,
};

use crate::client::{Client, Session};
use crate::prepare::Prepare;
use crate::tape::{Operation, Tape, Verb};
use crate::verify::{self, ReplyStatus, Verified};

pub struct AsyncMemcached {
    client: Library,
    address: String,
    meta: bool,
    timeout: Option<Duration>,
    reconnects: u64,
    /// The flag of the last expiry time: most tapes have only one.
    expiry: (u32, String),
}

pub enum Answer {
    Value(Option<Value>),
    Values(Vec<Value>),
    Meta(Option<MetaValue>),
    Metas(Vec<MetaValue>),
    Compared(Option<(Vec<u8>, bool)>),
    Done,
}

pub enum Failure {
    TimedOut,
    Library(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Library(error)
    }
}

const META_ALONE: &[Verb] = &[Verb::GETS, Verb::REPLACE, Verb::TOUCH, Verb::GAT, Verb::CAS];
/// Without a reply, on the text wire.
const QUIET: &[Verb] = &[Verb::DELETE, Verb::INCR, Verb::DECR];

impl Session for AsyncMemcached {
    const CLIENT: Client = Client {
        library: "async-memcached",
        version: env!("ASYNC_MEMCACHED_VERSION"),
        wires: &["text", "meta"],
        features: &["threads", "open_loop", "unix", "cancel"],
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
        options: &[("profile", &["common", "defaults"])],
    };
    type Answer = Answer;
    type Error = Failure;
    type Shared = ();

    fn share(_setup: &Prepare) {}

    fn refuse(setup: &Prepare, tape: &Tape) -> Option<&'static str> {
        let lacks = META_ALONE.iter().any(|verb| tape.kinds.contains(&(2 * usize::from(verb.0))));
        if setup.wire == "text" {
            return lacks.then_some("text: no gets, replace, touch, gat or cas");
        }
        let quiet = tape.kinds.iter().any(|kind| kind % 2 == 1);
        quiet.then_some("meta: no writes without a reply")
    }

    async fn open(setup: &Prepare, (): ()) -> Result<AsyncMemcached, String> {
        let server = &setup.servers[0];
        let address = match server.strip_prefix("unix:") {
            Some(path) => format!("unix://{path}"),
            None => format!("tcp://{server}"),
        };
        let timeout = setup.common().then(|| setup.timeout());
        let client =
            within(timeout, Library::new(&address)).await.map_err(|failure| match failure {
                Failure::TimedOut => format!("{server}: timed out"),
                Failure::Library(error) => format!("{server}: {error}"),
            })?;
        let expiry = (0, "T0".to_owned());
        Ok(AsyncMemcached {
            client,
            address,
            meta: setup.wire == "meta",
            timeout,
            reconnects: 0,
            expiry,
        })
    }

    async fn call(&mut self, op: &Operation) -> Result<Answer, Failure> {
        if self.client.is_closed() {
            self.client = within(self.timeout, Library::new(&self.address)).await?;
            self.reconnects += 1;
        }
        if self.expiry.0 != op.exptime_s {
            self.expiry = (op.exptime_s, format!("T{}", op.exptime_s));
        }
        if op.verb == Verb::VERSION {
            within(self.timeout, self.client.version()).await?;
            return Ok(Answer::Done);
        }
        if self.meta {
            within(self.timeout, meta(&mut self.client, op, &self.expiry.1)).await
        } else {
            within(self.timeout, text(&mut self.client, op)).await
        }
    }

    fn verify(tape: &Tape, op: &Operation, answer: &Answer) -> Verified {
        match answer {
            Answer::Value(value) => {
                verify::one(tape, op, value.as_ref().map(plain))
            }
            Answer::Meta(value) => {
                verify::one(tape, op, value.as_ref().map(|value| bytes(&value.data)))
            }
            Answer::Values(values) => verify::many(
                tape,
                op,
                values.iter().map(|value| (&value.key[..], plain(value))),
            ),
            Answer::Metas(values) => verify::many(
                tape,
                op,
                values.iter().map(|value| (bytes(&value.key), bytes(&value.data))),
            ),
            Answer::Compared(read) => verify::compared(
                tape,
                op,
                read.as_ref().map(|(value, stored)| (&value[..], *stored)),
            ),
            Answer::Done if op.verb.is(&[Verb::DELETE, Verb::TOUCH, Verb::INCR, Verb::DECR]) => {
                verify::known(true)
            }
            Answer::Done if op.verb == Verb::VERSION => Verified::of(ReplyStatus::Done),
            Answer::Done => verify::written(op, true),
        }
    }

    fn failure(op: &Operation, failure: &Failure) -> ReplyStatus {
        let Failure::Library(error) = failure else { return ReplyStatus::Timeout };
        let steps = op.verb.is(&[Verb::DELETE, Verb::TOUCH, Verb::INCR, Verb::DECR]);
        let guarded = op.verb.is(&[Verb::ADD, Verb::REPLACE, Verb::CAS]);
        match error {
            Error::Protocol(Status::NotFound) if steps => ReplyStatus::Missed,
            Error::Protocol(Status::NotStored | Status::Exists | Status::NotFound) if guarded => {
                ReplyStatus::NotStored
            }
            Error::Protocol(Status::Error(ErrorKind::Server(_)) | Status::NotStored) => {
                ReplyStatus::Server
            }
            Error::Protocol(Status::Error(ErrorKind::Protocol(_))) | Error::ParseError(_) => {
                ReplyStatus::Protocol
            }
            Error::Protocol(_) => ReplyStatus::Client,
            Error::Connect(_) | Error::ConnectionClosed | Error::Io(_) => ReplyStatus::Connection,
        }
    }

    async fn barrier(&mut self) -> Result<u64, Failure> {
        within(self.timeout, self.client.version()).await?;
        Ok(1)
    }

    fn reconnects(&self) -> u64 {
        self.reconnects
    }
}

/// The value from the text protocol.
fn plain(value: &Value) -> &[u8] {
    verify::plain(bytes(&value.data), value.flags.unwrap_or(0))
}

fn bytes(data: &Option<Vec<u8>>) -> &[u8] {
    data.as_deref().unwrap_or_default()
}

async fn within<T, E: Into<Failure>>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    match limit {
        None => work.await.map_err(Into::into),
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(result) => result.map_err(Into::into),
            Err(_) => Err(Failure::TimedOut),
        },
    }
}

async fn text(client: &mut Library, op: &Operation) -> Result<Answer, Error> {
    let ttl = Some(i64::from(op.exptime_s));
    let quiet = op.kind % 2 == 1;
    match op.verb {
        Verb::GET => return client.get(op.key()).await.map(Answer::Value),
        Verb::MGET => {
            return match client.get_multi(op.keys).await {
                // All keys are absent.
                Err(Error::Protocol(Status::NotFound)) => Ok(Answer::Values(Vec::new())),
                result => result.map(Answer::Values),
            };
        }
        Verb::SET => client.set(op.key(), op.value, ttl, None).await?,
        Verb::ADD => client.add(op.key(), op.value, ttl, None).await?,
        Verb::DELETE if quiet => client.delete_no_reply(op.key()).await?,
        Verb::INCR if quiet => client.increment_no_reply(op.key(), op.amount).await?,
        Verb::DECR if quiet => client.decrement_no_reply(op.key(), op.amount).await?,
        Verb::DELETE => client.delete(op.key()).await?,
        Verb::INCR => drop(client.increment(op.key(), op.amount).await?),
        Verb::DECR => drop(client.decrement(op.key(), op.amount).await?),
        _ => {
            let results = client.set_multi(op.pairs, ttl, None).await?;
            for result in results.into_values() {
                result?;
            }
        }
    }
    Ok(Answer::Done)
}

async fn meta(client: &mut Library, op: &Operation, expiry: &str) -> Result<Answer, Error> {
    let flags: &[&str] = match op.verb {
        Verb::GET | Verb::MGET => &["v"],
        Verb::GETS | Verb::CAS => &["v", "c"],
        Verb::GAT => &["v", expiry],
        // Without a flag in the reply, the library takes a hit for a miss.
        Verb::TOUCH => &[expiry, "t"],
        Verb::ADD => &[expiry, "ME"],
        Verb::REPLACE => &[expiry, "MR"],
        Verb::DELETE | Verb::INCR | Verb::DECR => &[],
        _ => &[expiry],
    };
    let flags = Some(flags);
    match op.verb {
        Verb::GET | Verb::GETS | Verb::GAT => {
            return client.meta_get(op.key(), false, None, flags).await.map(Answer::Meta);
        }
        Verb::MGET => return client.meta_get_multi(op.keys, flags).await.map(Answer::Metas),
        Verb::CAS => return compare(client, op, expiry).await.map(Answer::Compared),
        Verb::TOUCH => {
            if client.meta_get(op.key(), false, None, flags).await?.is_none() {
                return Err(Status::NotFound.into());
            }
        }
        Verb::DELETE => drop(client.meta_delete(op.key(), false, None, flags).await?),
        Verb::INCR => {
            drop(client.meta_increment(op.key(), false, None, Some(op.amount), flags).await?)
        }
        Verb::DECR => {
            drop(client.meta_decrement(op.key(), false, None, Some(op.amount), flags).await?)
        }
        Verb::MSET => {
            if !client.meta_set_multi(op.pairs, flags).await?.is_empty() {
                return Err(Status::NotStored.into());
            }
        }
        _ => drop(client.meta_set(op.key(), op.value, false, None, flags).await?),
    }
    Ok(Answer::Done)
}

/// A value and its token, then the new value if the token still holds.
async fn compare(
    client: &mut Library,
    op: &Operation,
    expiry: &str,
) -> Result<Option<(Vec<u8>, bool)>, Error> {
    let Some(MetaValue { data: Some(value), cas: Some(token), .. }) =
        client.meta_get(op.key(), false, None, Some(&["v", "c"])).await?
    else {
        return Ok(None);
    };
    let token = format!("C{token}");
    match client.meta_set(op.key(), op.value, false, None, Some(&[expiry, &token])).await {
        Ok(_) => Ok(Some((value, true))),
        Err(Error::Protocol(Status::Exists | Status::NotFound)) => Ok(Some((value, false))),
        Err(error) => Err(error),
    }
}
