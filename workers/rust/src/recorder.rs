//! The results of a lane's operations for each kind, and their message.

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::histogram::{encode, histogram};
use crate::tape::{Operation, Verb};
use crate::verify::{ReplyStatus, Verified};

const ERRORS: &[(ReplyStatus, &str)] = &[
    (ReplyStatus::Timeout, "timeout"),
    (ReplyStatus::Connection, "connection"),
    (ReplyStatus::Server, "server"),
    (ReplyStatus::Client, "client"),
    (ReplyStatus::Protocol, "protocol"),
];

/// The sums of one kind.
pub struct Recorder {
    pub attempts: u64,
    ok: u64,
    hits: u64,
    misses: u64,
    not_stored: u64,
    keys: u64,
    value_bytes: u64,
    key_bytes: u64,
    busy_ns: u64,
    failed: [u64; 9],
    service: Histogram<u64>,
    /// Only in an open loop; in a closed loop it would equal the service times.
    pub response: Histogram<u64>,
}

impl Recorder {
    /// Nothing yet.
    pub fn new() -> Recorder {
        Recorder {
            attempts: 0,
            ok: 0,
            hits: 0,
            misses: 0,
            not_stored: 0,
            keys: 0,
            value_bytes: 0,
            key_bytes: 0,
            busy_ns: 0,
            failed: [0; 9],
            service: histogram(),
            response: histogram(),
        }
    }

    /// Note an operation; true if its time counts.
    pub fn note(&mut self, op: &Operation, verified: &Verified, service_ns: u64) -> bool {
        self.attempts += 1;
        let timed =
            verified.status < ReplyStatus::WrongValue || verified.status == ReplyStatus::Timeout;
        if timed {
            self.service.saturating_record(service_ns.max(1));
        }
        if verified.status >= ReplyStatus::WrongValue {
            self.failed[verified.status as usize] += 1;
            return timed;
        }
        self.ok += 1;
        self.busy_ns += service_ns;
        self.keys += op.keys.len() as u64;
        self.key_bytes += op.key_bytes;
        self.value_bytes += verified.value_bytes as u64;
        self.not_stored += u64::from(verified.status == ReplyStatus::NotStored);
        let writes = op.kind % 2 == 1
            || op.verb.is(&[Verb::SET, Verb::ADD, Verb::REPLACE, Verb::MSET, Verb::VERSION]);
        if !writes {
            self.hits += verified.found as u64;
            self.misses += (op.keys.len() - verified.found) as u64;
        }
        timed
    }

    /// Add another lane's results.
    pub fn add(&mut self, other: &Recorder) {
        let sums = [
            (&mut self.attempts, other.attempts),
            (&mut self.ok, other.ok),
            (&mut self.hits, other.hits),
            (&mut self.misses, other.misses),
            (&mut self.not_stored, other.not_stored),
            (&mut self.keys, other.keys),
            (&mut self.value_bytes, other.value_bytes),
            (&mut self.key_bytes, other.key_bytes),
            (&mut self.busy_ns, other.busy_ns),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
        for (sum, more) in self.failed.iter_mut().zip(other.failed) {
            *sum += more;
        }
        self.service.add(&other.service).expect("same bounds");
        self.response.add(&other.response).expect("same bounds");
    }

    /// Its response times.
    pub fn responses(&self, open_loop: bool) -> &Histogram<u64> {
        if open_loop { &self.response } else { &self.service }
    }

    /// Its message.
    pub fn message(&self, open_loop: bool) -> Value {
        let mut message = self.counts();
        let service = encode(&self.service);
        message["response"] =
            if open_loop { encode(&self.response).into() } else { service.clone().into() };
        message["service"] = service.into();
        message
    }

    /// Its message without histograms.
    pub fn counts(&self) -> Value {
        let count = |status: ReplyStatus| self.failed[status as usize];
        let errors: Map<String, Value> = (ERRORS.iter())
            .filter(|(status, _)| count(*status) > 0)
            .map(|(status, name)| ((*name).to_owned(), json!(count(*status))))
            .collect();
        json!({
            "attempts": self.attempts, "ok": self.ok, "hits": self.hits, "misses": self.misses,
            "not_stored": self.not_stored, "wrong_values": count(ReplyStatus::WrongValue), "errors": errors,
            "keys": self.keys, "value_bytes": self.value_bytes, "key_bytes": self.key_bytes,
            "busy_ns": self.busy_ns,
        })
    }
}
