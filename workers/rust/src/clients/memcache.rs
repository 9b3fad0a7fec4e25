//! memcache: the classic client; a pool with one connection for each thread; binary or text.
//!
//! Its pool asks the server for its `version` before each operation. Users have this cost, so it is
//! measured, unless the option `test_on_check_out=off` turns it off. TCP_NODELAY is its default. On
//! the text wire it does not report a refused `add` or `replace`: these are on the binary wire only.
//! On the binary wire its `incr` and `decr` create a missing counter: this file refuses tapes on which
//! a counter can be missing. Over a Unix socket it has no time-outs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memcache::{
    Client as Library, ClientError, CommandError, ConnectionManager, MemcacheError, ServerError,
    Url,
};

use crate::client::{Client, Session};
use crate::prepare::Prepare;
use crate::tape::{Operation, Tape, Verb};
use crate::verify::{self, ReplyStatus, Verified};

type Flagged = (Vec<u8>, u32);
type Versioned = (Vec<u8>, u32, Option<u64>);

pub struct Memcache {
    client: Library,
    /// Connections that the pools have made.
    opened: Arc<AtomicU64>,
    at_first: u64,
}

pub enum Answer {
    Value(Option<Flagged>),
    Values(HashMap<String, Flagged>),
    Versioned(HashMap<String, Versioned>),
    Compared(Option<(Flagged, bool)>),
    Known(bool),
    Done,
}

#[derive(Debug)]
struct Count(Arc<AtomicU64>);

impl r2d2::HandleEvent for Count {
    fn handle_acquire(&self, _event: r2d2::event::AcquireEvent) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Its message for a text connection that ends.
const CUT_OFF: &str = "Ascii protocol no line found";
const BINARY_ALONE: &[Verb] = &[Verb::ADD, Verb::REPLACE];
const STEPS: &[Verb] = &[Verb::INCR, Verb::DECR];

impl Session for Memcache {
    const CLIENT: Client = Client {
        library: "memcache",
        version: env!("MEMCACHE_VERSION"),
        wires: &["binary", "text"],
        features: &["threads", "open_loop", "unix", "cluster", "login_sasl", "login_text"],
        verbs: &[
            Verb::GET,
            Verb::GETS,
            Verb::MGET,
            Verb::SET,
            Verb::ADD,
            Verb::REPLACE,
            Verb::DELETE,
            Verb::TOUCH,
            Verb::VERSION,
            Verb::CAS,
            Verb::INCR,
            Verb::DECR,
        ],
        quiet: &[],
        options: &[
            ("profile", &["common", "defaults"]),
            ("test_on_check_out", &["on", "off"]),
            ("hashing", &["default"]),
        ],
    };
    type Answer = Answer;
    type Error = MemcacheError;
    type Shared = ();

    fn share(_setup: &Prepare) {}

    fn refuse(setup: &Prepare, tape: &Tape) -> Option<&'static str> {
        let lacks = BINARY_ALONE.iter().any(|verb| tape.kinds.contains(&(2 * usize::from(verb.0))));
        if setup.wire == "text" && lacks {
            return Some("text: the library does not report a refused add or replace");
        }
        let steps = STEPS.iter().any(|verb| tape.kinds.contains(&(2 * usize::from(verb.0))));
        let deletes = tape.kinds.contains(&(2 * usize::from(Verb::DELETE.0)));
        if setup.wire == "binary" && steps && (deletes || !tape.whole) {
            return Some(
                "binary: its incr and decr silently create a missing counter",
            );
        }
        tape.repeats.then_some("a batch that names a key twice: the library gives maps")
    }

    async fn open(setup: &Prepare, (): ()) -> Result<Memcache, String> {
        let opened = Arc::new(AtomicU64::new(0));
        let pools: Result<Vec<_>, String> = (setup.servers.iter())
            .map(|server| {
                pool(setup, server, &opened).map_err(|error| format!("{server}: {error}"))
            })
            .collect();
        let client = Library::with_pools(pools?).map_err(|error| error.to_string())?;
        // Pools fill up in the background; an answer means that the connection is there.
        client.version().map_err(|error| format!("{}: {error}", setup.servers[0]))?;
        let at_first = opened.load(Ordering::Relaxed);
        Ok(Memcache { client, opened, at_first })
    }

    async fn call(&mut self, op: &Operation) -> Result<Answer, MemcacheError> {
        let client = &self.client;
        match op.verb {
            Verb::GET => return client.get(op.key()).map(Answer::Value),
            Verb::GETS => return client.gets(op.keys).map(Answer::Versioned),
            Verb::MGET => return client.gets(op.keys).map(Answer::Values),
            Verb::CAS => return compare(client, op).map(Answer::Compared),
            Verb::SET => client.set(op.key(), op.value, op.exptime_s)?,
            Verb::ADD => client.add(op.key(), op.value, op.exptime_s)?,
            Verb::REPLACE => client.replace(op.key(), op.value, op.exptime_s)?,
            Verb::DELETE => return client.delete(op.key()).map(Answer::Known),
            Verb::TOUCH => return client.touch(op.key(), op.exptime_s).map(Answer::Known),
            Verb::INCR => {
                return client.increment(op.key(), op.amount).map(|_| Answer::Known(true));
            }
            Verb::DECR => {
                return client.decrement(op.key(), op.amount).map(|_| Answer::Known(true));
            }
            _ => drop(client.version()?),
        }
        Ok(Answer::Done)
    }

    fn verify(tape: &Tape, op: &Operation, answer: &Answer) -> Verified {
        match answer {
            Answer::Value(value) => {
                verify::one(tape, op, value.as_ref().map(|(value, flags)| verify::plain(value, *flags)))
            }
            Answer::Values(values) => {
                // In the order of the request, in which they are quick to judge.
                let found = |key: &&'static str| {
                    let (value, flags) = values.get(*key)?;
                    Some((key.as_bytes(), verify::plain(value, *flags)))
                };
                let verified = verify::many(tape, op, op.keys.iter().filter_map(found));
                let strange = verified.status == ReplyStatus::Done && verified.found < values.len();
                if strange { Verified::of(ReplyStatus::WrongValue) } else { verified }
            }
            Answer::Versioned(values) => {
                let found = values.get(op.key());
                verify::one(tape, op, found.map(|(value, flags, _)| verify::plain(value, *flags)))
            }
            Answer::Compared(read) => verify::compared(
                tape,
                op,
                read.as_ref()
                    .map(|((value, flags), stored)| (verify::plain(value, *flags), *stored)),
            ),
            Answer::Known(there) => verify::known(*there),
            Answer::Done if op.verb == Verb::VERSION => Verified::of(ReplyStatus::Done),
            Answer::Done => verify::written(op, true),
        }
    }

    fn failure(op: &Operation, error: &MemcacheError) -> ReplyStatus {
        use std::io::ErrorKind::{TimedOut, WouldBlock};
        let guarded = op.verb.is(&[Verb::ADD, Verb::REPLACE]);
        match error {
            MemcacheError::CommandError(CommandError::KeyNotFound)
                if op.verb.is(&[Verb::INCR, Verb::DECR]) =>
            {
                ReplyStatus::Missed
            }
            MemcacheError::CommandError(CommandError::KeyExists | CommandError::KeyNotFound)
                if guarded =>
            {
                ReplyStatus::NotStored
            }
            MemcacheError::IOError(error) if matches!(error.kind(), WouldBlock | TimedOut) => {
                ReplyStatus::Timeout
            }
            MemcacheError::IOError(_) | MemcacheError::PoolError(_) => ReplyStatus::Connection,
            MemcacheError::ClientError(ClientError::Error(text)) if text == CUT_OFF => {
                ReplyStatus::Connection
            }
            MemcacheError::ServerError(ServerError::Error(_))
            | MemcacheError::CommandError(CommandError::ValueTooLarge | CommandError::Unknown(_)) => {
                ReplyStatus::Server
            }
            MemcacheError::ServerError(_) | MemcacheError::ParseError(_) => ReplyStatus::Protocol,
            _ => ReplyStatus::Client,
        }
    }

    fn reconnects(&self) -> u64 {
        self.opened.load(Ordering::Relaxed) - self.at_first
    }
}

fn pool(setup: &Prepare, server: &str, opened: &Arc<AtomicU64>) -> Result<memcache::Pool, String> {
    let mut url = match server.strip_prefix("unix:") {
        Some(path) => format!("memcache://{path}?"),
        None => format!("memcache://{server}?"),
    };
    if setup.wire == "text" {
        url += "protocol=ascii&";
    }
    let mut builder = r2d2::Pool::builder()
        .max_size(1)
        .test_on_check_out(setup.is("test_on_check_out", "on", "on"))
        .event_handler(Box::new(Count(opened.clone())));
    if setup.common() {
        url += &format!("timeout={}", setup.timeout().as_secs_f64());
        builder = builder.connection_timeout(setup.timeout());
    }
    let mut url = Url::parse(&url).map_err(|error| error.to_string())?;
    if let Some((user, password)) = setup.login()? {
        let taken = url.set_username(user).is_ok() && url.set_password(Some(&password)).is_ok();
        // The library sends characters encoded that a URL encodes.
        if !taken || url.username() != user || url.password() != Some(&password) {
            return Err("auth: the library's URL cannot have this login".into());
        }
    }
    builder.build(ConnectionManager::new(url)).map_err(|error| error.to_string())
}

/// A value and its token, then the new value if the token still holds.
fn compare(client: &Library, op: &Operation) -> Result<Option<(Flagged, bool)>, MemcacheError> {
    let read: Option<Versioned> = client.get(op.key())?;
    let Some((value, flags, Some(token))) = read else { return Ok(None) };
    match client.cas(op.key(), op.value, op.exptime_s, token) {
        Ok(stored) => Ok(Some(((value, flags), stored))),
        Err(MemcacheError::CommandError(CommandError::KeyExists | CommandError::KeyNotFound)) => {
            Ok(Some(((value, flags), false)))
        }
        Err(error) => Err(error),
    }
}
