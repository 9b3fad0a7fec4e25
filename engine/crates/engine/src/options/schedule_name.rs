//! The values of `--schedule`.

use std::str::FromStr;

use cachemark_tape::{Arrivals, WorkloadError};

/// When operations are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScheduleName {
    Closed,
    Open(Arrivals),
    /// The times of a trace, played at this speed.
    Replay(f64),
}

impl FromStr for ScheduleName {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<ScheduleName, WorkloadError> {
        match text {
            "closed" => Ok(ScheduleName::Closed),
            "replay" => Ok(ScheduleName::Replay(1.0)),
            _ if text.starts_with("replay:") => match text["replay:".len()..].parse::<f64>() {
                Ok(speed) if speed > 0.0 && speed.is_finite() => Ok(ScheduleName::Replay(speed)),
                _ => Err(WorkloadError(format!(
                    "{text}: write replay, or replay:10 for ten times as fast"
                ))),
            },
            _ => text.parse().map(ScheduleName::Open),
        }
    }
}
