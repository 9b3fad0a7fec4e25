//! The script file: TOML, with times in ms.

use std::fmt;

use serde::Deserialize;

/// How reads are answered. By default, at once.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The seed of the drawn times.
    pub seed: u64,
    /// Reads of keys without this prefix are answered at once and not logged: some libraries read keys
    /// of their own.
    pub key_prefix: String,
    /// The time between a read and its reply, independent of other reads.
    pub delay: Option<DelaySpec>,
    /// One server for all connections: it serves reads one by one, each for this time.
    pub service: Option<DelaySpec>,
    pub stall: Option<Stall>,
    pub chunks: Option<Chunks>,
    /// Every n-th read is never answered, and its connection stays silent. 0: none.
    pub drop_every: u64,
    /// Every n-th hit has a wrong value. 0: none.
    pub wrong_every: u64,
    /// A connection that has answered this many reads closes when the next one arrives. 0: never.
    pub close_after: u64,
    /// The delay before a connection is accepted.
    pub accept_ms: f64,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            seed: 1,
            key_prefix: String::new(),
            delay: None,
            service: None,
            stall: None,
            chunks: None,
            drop_every: 0,
            wrong_every: 0,
            close_after: 0,
            accept_ms: 0.0,
        }
    }
}

/// A time for each read: listed or drawn.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum DelaySpec {
    Constant {
        ms: f64,
    },
    /// The time of the first read, of the second, and so on; then again from the first.
    List {
        ms: Vec<f64>,
    },
    Exponential {
        mean_ms: f64,
    },
    Lognormal {
        median_ms: f64,
        sigma: f64,
    },
    Bimodal {
        fast_ms: f64,
        slow_ms: f64,
        slow_share: f64,
    },
}

/// The server stalls for the first `stall_ms` of each period. The first period starts `phase_ms` after
/// the first read.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    pub stall_ms: f64,
    pub period_ms: f64,
    #[serde(default)]
    pub phase_ms: f64,
}

/// The delays of the first half of a reply, and of the rest.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chunks {
    pub first_ms: f64,
    pub last_ms: f64,
}

/// The error of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError(pub String);

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The longest time in a script: an hour.
const MAX_MS: f64 = 3_600_000.0;

impl Script {
    /// Parse a script.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let script: Script =
            toml::from_str(text).map_err(|error| ScriptError(error.to_string()))?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), ScriptError> {
        check_time("accept_ms", self.accept_ms)?;
        for (name, times) in [("delay", &self.delay), ("service", &self.service)] {
            times.as_ref().map_or(Ok(()), |times| times.check(name))?;
        }
        if let Some(Stall { stall_ms, period_ms, phase_ms }) = self.stall {
            check_time("stall.stall_ms", stall_ms)?;
            check_time("stall.period_ms", period_ms)?;
            check_time("stall.phase_ms", phase_ms)?;
            if stall_ms >= period_ms {
                return reject("stall: stall_ms must be shorter than period_ms");
            }
        }
        if let Some(Chunks { first_ms, last_ms }) = self.chunks {
            check_time("chunks.first_ms", first_ms)?;
            check_time("chunks.last_ms", last_ms)?;
            if first_ms > last_ms {
                return reject("chunks: first_ms must not be after last_ms");
            }
            if self.delay.is_some() {
                return reject("chunks: give both times there, and no delay");
            }
        }
        Ok(())
    }
}

impl DelaySpec {
    fn check(&self, name: &str) -> Result<(), ScriptError> {
        match self {
            DelaySpec::Constant { ms } => check_time(&format!("{name}.ms"), *ms),
            DelaySpec::List { ms } if ms.is_empty() => reject(&format!("{name}.ms: an empty list")),
            DelaySpec::List { ms } => {
                ms.iter().try_for_each(|each| check_time(&format!("{name}.ms"), *each))
            }
            DelaySpec::Exponential { mean_ms } => check_time(&format!("{name}.mean_ms"), *mean_ms),
            DelaySpec::Lognormal { median_ms, sigma } => {
                check_time(&format!("{name}.median_ms"), *median_ms)?;
                check_range(&format!("{name}.sigma"), *sigma, 10.0)
            }
            DelaySpec::Bimodal { fast_ms, slow_ms, slow_share } => {
                check_time(&format!("{name}.fast_ms"), *fast_ms)?;
                check_time(&format!("{name}.slow_ms"), *slow_ms)?;
                check_range(&format!("{name}.slow_share"), *slow_share, 1.0)
            }
        }
    }
}

fn check_time(name: &str, ms: f64) -> Result<(), ScriptError> {
    check_range(name, ms, MAX_MS)
}

fn check_range(name: &str, value: f64, most: f64) -> Result<(), ScriptError> {
    match (0.0..=most).contains(&value) {
        true => Ok(()),
        false => reject(&format!("{name} = {value}: it must be between 0 and {most}")),
    }
}

fn reject(text: &str) -> Result<(), ScriptError> {
    Err(ScriptError(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_parsed() {
        let text = "
            seed = 7
            delay = { kind = 'lognormal', median_ms = 1, sigma = 0.5 }
            stall = { stall_ms = 100, period_ms = 1000 }
            drop_every = 100
        ";
        let script = Script::parse(text).expect("a script");
        assert_eq!(script.delay, Some(DelaySpec::Lognormal { median_ms: 1.0, sigma: 0.5 }));
        assert_eq!(script.stall.map(|stall| stall.phase_ms), Some(0.0));
        assert_eq!((script.seed, script.drop_every, script.close_after), (7, 100, 0));
    }

    #[test]
    fn an_invalid_script_is_rejected_with_its_place() {
        for (text, place) in [
            ("delay = { kind = 'constant', ms = -1 }", "delay.ms = -1"),
            ("delay = { kind = 'constant', ms = nan }", "delay.ms = NaN"),
            ("service = { kind = 'list', ms = [] }", "service.ms: an empty list"),
            (
                "delay = { kind = 'bimodal', fast_ms = 1, slow_ms = 2, slow_share = 2 }",
                "slow_share",
            ),
            ("stall = { stall_ms = 2, period_ms = 1 }", "shorter than period_ms"),
            ("chunks = { first_ms = 2, last_ms = 1 }", "must not be after"),
            ("dealy = 1", "dealy"),
            ("delay = { kind = 'constant', ms = 1, sigma = 2 }", "sigma"),
        ] {
            let error = Script::parse(text).expect_err(text).to_string();
            assert!(error.contains(place), "{text}: {error}");
        }
    }
}
