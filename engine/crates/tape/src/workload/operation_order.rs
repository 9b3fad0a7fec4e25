//! The order of operations: drawn from a mix, in phases, or in a fixed sequence.

use super::error::{WorkloadError, invalid};
use crate::format::Verb;

/// The order of the operations of a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Drawn from the mix by weight.
    Mixed,
    /// All operations of the first kind, then all of the second, and so on: each kind starts at the
    /// first key.
    Phases,
    /// These steps, repeated. Each repetition is one group and moves the keys on by `key_step`.
    Sequence { steps: Vec<SequenceStep>, key_step: u32 },
}

impl Order {
    /// The number of records in a group.
    pub fn group(&self) -> u64 {
        match self {
            Order::Sequence { steps, .. } => steps.len() as u64,
            _ => 1,
        }
    }
}

/// One operation of a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceStep {
    pub kind: MixEntry,
    /// Its first and last key (for counters: which counter). `None`: draw them.
    pub keys: Option<(u32, u32)>,
}

/// Parse a sequence such as `set@0 get@0 mget@0-5 incr@0 get`.
pub fn parse_sequence(text: &str) -> Result<Vec<SequenceStep>, WorkloadError> {
    let steps: Vec<SequenceStep> =
        text.split_whitespace().map(parse_step).collect::<Result<_, _>>()?;
    if steps.is_empty() {
        return invalid("--sequence names no operation");
    }
    Ok(steps)
}

fn parse_step(text: &str) -> Result<SequenceStep, WorkloadError> {
    let (name, keys) = text.split_once('@').map_or((text, None), |(name, keys)| (name, Some(keys)));
    let kind = parse_name(name, 1.0)?;
    let Some(keys) = keys else { return Ok(SequenceStep { kind, keys: None }) };
    let (first, last) = keys.split_once('-').unwrap_or((keys, keys));
    let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
        return invalid(format!("--sequence {text:?}: write set@0, or mget@0-5"));
    };
    let several = last > first;
    if last < first || (several && !kind.verb.has_run()) || last - first >= u32::from(u16::MAX) {
        return invalid(format!("--sequence {text:?}: {name} cannot name these keys"));
    }
    if kind.verb.is_keyless() {
        return invalid(format!("--sequence {text:?}: {} names no key", kind.verb.name()));
    }
    Ok(SequenceStep { kind, keys: Some((first, last)) })
}

/// A kind of operation and its weight in the mix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixEntry {
    pub verb: Verb,
    pub noreply: bool,
    pub weight: f64,
}

/// Parse a mix such as `get=9,set_noreply=1`.
pub fn parse_mix(text: &str) -> Result<Vec<MixEntry>, WorkloadError> {
    let kinds: Vec<MixEntry> = text.split(',').map(parse_kind).collect::<Result<_, _>>()?;
    for (index, kind) in kinds.iter().enumerate() {
        if kinds[..index].iter().any(|k| (k.verb, k.noreply) == (kind.verb, kind.noreply)) {
            return invalid(format!("mix: {} appears twice", kind.verb.kind(kind.noreply)));
        }
    }
    Ok(kinds)
}

fn parse_kind(text: &str) -> Result<MixEntry, WorkloadError> {
    let (name, weight) = text.trim().split_once('=').unwrap_or((text.trim(), "1"));
    match weight.parse::<f64>() {
        Ok(weight) if weight.is_finite() && weight > 0.0 => parse_name(name, weight),
        _ => invalid(format!("mix: {name}={weight}: the weight must be above 0")),
    }
}

fn parse_name(name: &str, weight: f64) -> Result<MixEntry, WorkloadError> {
    let (verb_name, noreply) = match name.strip_suffix("_noreply") {
        Some(verb) => (verb, true),
        None => (name, false),
    };
    let Some(verb) = Verb::ALL.into_iter().find(|verb| verb.name() == verb_name) else {
        let known: Vec<_> = Verb::ALL.iter().map(|verb| verb.name()).collect();
        return invalid(format!("mix: unknown operation {name:?}: use {}", known.join(", ")));
    };
    if noreply && !verb.may_be_noreply() {
        return invalid(format!("mix: {verb_name} always has a reply"));
    }
    Ok(MixEntry { verb, noreply, weight })
}
