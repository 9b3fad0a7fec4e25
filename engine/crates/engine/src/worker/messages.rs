//! The messages of the worker protocol, which PROTOCOL.md defines.

use std::collections::BTreeMap;

use cachemark_load::{self as load, Failure, KindMetrics, Metrics, RunResult, encode_histogram};
use serde::{Deserialize, Serialize};

pub const PROTOCOL_VERSION: u32 = 2;

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    Prefill,
    Warmup,
    Measure,
}

#[derive(Debug, Deserialize)]
pub struct Prepare {
    pub servers: Vec<String>,
    #[serde(default = "text")]
    pub wire: String,
    #[serde(default = "one")]
    pub threads: usize,
    #[serde(default = "one")]
    pub connections: usize,
    #[serde(default = "one")]
    pub depth: usize,
    #[serde(default = "each")]
    pub refill: String,
    pub tape: String,
    #[serde(default = "whole")]
    pub segment: (u64, u64),
    #[serde(default = "second")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub struct Run {
    pub phase: Phase,
    #[serde(default)]
    pub start_unix_ns: u64,
    #[serde(default)]
    pub ops: Option<u64>,
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// The path of the call log; empty for none.
    #[serde(default)]
    pub calls: String,
}

#[derive(Debug, Deserialize)]
pub struct Slice {
    pub length_us: u64,
    #[serde(default)]
    pub lead_in_us: u64,
    #[serde(default)]
    pub start_unix_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    Hello {},
    Prepare(Box<Prepare>),
    Run(Run),
    BeginSlices {},
    Slice(Slice),
    EndSlices {},
    Stop {},
    Bye {},
}

#[derive(Debug, Serialize)]
pub struct Ready {
    pub protocol: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<&'static str>,
}

/// The answer to `prepare`: without what `hello` says of the client.
impl Default for Ready {
    fn default() -> Ready {
        Ready {
            protocol: PROTOCOL_VERSION,
            client: None,
            library: None,
            library_version: None,
            language: None,
            runtime: None,
            capabilities: Vec::new(),
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    Ready(Ready),
    Progress {
        ops: u64,
        errors: u64,
    },
    SliceDone {
        ops: u64,
        errors: u64,
        lead_in_ops: u64,
        elapsed_ns: u64,
        half_ops: u64,
        half_ns: u64,
    },
    Done(Box<Done>),
    Unsupported {
        reason: String,
        remedy: String,
    },
    Error {
        kind: &'static str,
        text: String,
        definite: bool,
    },
}

#[derive(Debug, Serialize)]
pub struct Done {
    pub phase: Phase,
    pub elapsed_ns: u64,
    pub send_elapsed_ns: u64,
    pub operations: BTreeMap<&'static str, Operation>,
    pub send_lag: Option<String>,
    pub generator_lag: Option<String>,
    pub max_in_flight: u64,
    pub queued: u64,
    pub unsent: u64,
    pub reconnects: u64,
    pub renewed: u64,
    pub failed_connects: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub barriers: u64,
    pub overflow: u64,
    pub timeline: Option<Timeline>,
    pub sections: Option<Sections>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<Groups>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead_in: Option<BTreeMap<&'static str, Operation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong_replies: Vec<WrongReply>,
}

#[derive(Debug, Serialize)]
pub struct WrongReply {
    pub record: u32,
    pub value: String,
}

#[derive(Debug, Serialize)]
pub struct Sections {
    pub length_ns: u64,
    pub ok: Vec<u64>,
    pub response: Vec<Option<String>>,
}

#[derive(Debug, Serialize)]
pub struct Groups {
    pub length: u64,
    pub ok: u64,
    pub time: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Timeline {
    pub slice_ns: u64,
    pub ok: Vec<u64>,
    pub response_ns: Vec<u64>,
}

#[derive(Debug, Serialize)]
pub struct Operation {
    pub attempts: u64,
    pub ok: u64,
    pub hits: u64,
    pub misses: u64,
    pub not_stored: u64,
    pub wrong_values: u64,
    pub errors: BTreeMap<&'static str, u64>,
    pub keys: u64,
    pub value_bytes: u64,
    pub key_bytes: u64,
    pub busy_ns: u64,
    pub response: Option<String>,
    pub service: Option<String>,
}

impl Done {
    /// The message with the results of a phase.
    pub fn new(phase: Phase, result: &RunResult) -> Done {
        let metrics = &result.metrics;
        Done {
            phase,
            elapsed_ns: result.elapsed_ns,
            send_elapsed_ns: result.send_elapsed_ns,
            operations: metrics.kinds().map(|(name, kind)| (name, Operation::new(kind))).collect(),
            send_lag: encode_histogram(&metrics.send_lag),
            generator_lag: encode_histogram(&metrics.generator_lag),
            max_in_flight: metrics.max_in_flight,
            queued: metrics.queued,
            unsent: metrics.unsent,
            reconnects: metrics.reconnects,
            renewed: metrics.renewed,
            failed_connects: metrics.failed_connects,
            cpu_user_ns: result.cpu_user_ns,
            cpu_system_ns: result.cpu_system_ns,
            barriers: metrics.barriers,
            overflow: metrics.overflow,
            timeline: result.lead_in.is_none().then(|| Timeline::new(&metrics.timeline)),
            sections: result.sections.as_ref().map(Sections::new),
            groups: Groups::new(metrics).filter(|_| phase != Phase::Prefill),
            lead_in: result.lead_in.as_ref().map(untimed),
            store_bytes: None,
            wrong_replies: Vec::new(),
        }
    }
}

impl Sections {
    fn new(sections: &load::Sections) -> Sections {
        let each = &sections.each;
        Sections {
            length_ns: sections.length_ns,
            ok: each.iter().map(|section| section.ok).collect(),
            response: each.iter().map(|section| encode_histogram(&section.response)).collect(),
        }
    }
}

impl Groups {
    fn new(metrics: &Metrics) -> Option<Groups> {
        let time = encode_histogram(&metrics.groups);
        metrics.group_length.map(|length| Groups { length, ok: metrics.groups.len(), time })
    }
}

impl Timeline {
    fn new(timeline: &load::Timeline) -> Timeline {
        let slices = timeline.slices();
        Timeline {
            slice_ns: timeline.slice_ns(),
            ok: slices.iter().map(|slice| slice.ok).collect(),
            response_ns: slices.iter().map(|slice| slice.response_ns).collect(),
        }
    }
}

impl Operation {
    fn new(kind: &KindMetrics) -> Operation {
        let counted = Failure::ALL.into_iter().zip(kind.errors);
        Operation {
            attempts: kind.attempts,
            ok: kind.ok,
            hits: kind.hits,
            misses: kind.misses,
            not_stored: kind.not_stored,
            wrong_values: kind.wrong_values,
            errors: counted
                .filter(|(_, count)| *count > 0)
                .map(|(failure, count)| (failure.name(), count))
                .collect(),
            keys: kind.keys,
            value_bytes: kind.value_bytes,
            key_bytes: kind.key_bytes,
            busy_ns: kind.busy_ns,
            response: encode_histogram(&kind.response),
            service: encode_histogram(&kind.service),
        }
    }
}

/// Operations without their times.
fn untimed(metrics: &Metrics) -> BTreeMap<&'static str, Operation> {
    let counts = |kind| Operation { response: None, service: None, ..Operation::new(kind) };
    metrics.kinds().map(|(name, kind)| (name, counts(kind))).collect()
}

fn text() -> String {
    "text".to_owned()
}

fn one() -> usize {
    1
}

fn each() -> String {
    "each".to_owned()
}

fn whole() -> (u64, u64) {
    (0, 1)
}

fn second() -> u64 {
    1000
}
