//! How many operations of a window may fail, and the message if too many did.

use std::fmt;
use std::str::FromStr;

use cachemark_command::units;
use cachemark_load::{Failure, KindMetrics, Metrics};

const WRONG_VALUES: &str = "; an earlier run with other sizes may have stored the same keys: empty the server first \
     (flush_all), or use other keys with --key-pattern";

/// How many operations may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorLimit {
    Count(u64),
    Share(f64),
}

impl FromStr for ErrorLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<ErrorLimit, String> {
        if let Some(percent) = text.strip_suffix('%') {
            let share = percent.trim().parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p));
            return share
                .map(|percent| ErrorLimit::Share(percent / 100.0))
                .ok_or_else(|| format!("{text:?}: write a number, or a share such as 0.1%"));
        }
        units::count(text).map(|count| ErrorLimit::Count(count as u64))
    }
}

impl fmt::Display for ErrorLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorLimit::Count(most) => write!(out, "{most}"),
            ErrorLimit::Share(most) => write!(out, "{}%", most * 100.0),
        }
    }
}

impl ErrorLimit {
    pub fn allow(self, failed: u64, of: u64) -> bool {
        match self {
            ErrorLimit::Count(most) => failed <= most,
            ErrorLimit::Share(most) => failed as f64 <= most * of as f64,
        }
    }

    /// The problem of a window; `None` if it has none.
    pub fn problem(self, metrics: &Metrics) -> Option<String> {
        let (ok, failed) = (metrics.ok(), metrics.failed());
        let all = ok + failed;
        if all == 0 {
            return Some("no operation began in the window".to_owned());
        }
        let kinds = by_kind(metrics.kinds().map(|(_, kind)| kind));
        let wrong = metrics.kinds().any(|(_, kind)| kind.wrong_values > 0);
        let hint = if wrong { WRONG_VALUES } else { "" };
        if ok == 0 {
            return Some(format!("no operation succeeded: {failed} failed ({kinds}){hint}"));
        }
        let refused = !self.allow(failed, all);
        refused.then(|| {
            format!("{failed} of {all} operations failed ({kinds}): --max-errors {self}{hint}")
        })
    }
}

/// The message if keys could not be stored before the window; `None` if all were.
pub fn prefill_problem(metrics: &Metrics, keys: u64) -> Option<String> {
    let (stored, failed) = (metrics.ok(), metrics.failed());
    if failed == 0 {
        return (stored < keys).then(|| {
            format!(
                "{stored} of {keys} keys were stored before the window: after its replies, the server \
                 closed connections or sent replies that no request asked for; is it a memcached? \
                 (--no-prefill skips this)"
            )
        });
    }
    let some =
        |failure: Failure| metrics.kinds().any(|(_, kind)| kind.errors[failure as usize] > 0);
    let remedy = if some(Failure::Server) || some(Failure::Client) {
        "the server refuses them: check its item size limit and its memory, and whether it needs --auth"
    } else if some(Failure::Connection) || some(Failure::Protocol) {
        "the server closes connections: does it need --tls, --auth, another --wire or fewer --connections?"
    } else {
        "the server does not answer in time: use a longer --timeout, or --depth 1"
    };
    let kinds = by_kind(metrics.kinds().map(|(_, kind)| kind));
    Some(format!(
        "{failed} keys could not be stored before the window ({kinds}); {remedy} \
         (--no-prefill skips this)"
    ))
}

/// The failures by kind, such as "3 timeout, 1 wrong value"; "0" if there are none.
pub fn by_kind<'a>(kinds: impl Iterator<Item = &'a KindMetrics>) -> String {
    let (mut counts, mut wrong) = ([0; Failure::ALL.len()], 0);
    for kind in kinds {
        counts.iter_mut().zip(kind.errors).for_each(|(sum, count)| *sum += count);
        wrong += kind.wrong_values;
    }
    let named = Failure::ALL.into_iter().map(Failure::name).chain(["wrong value"]);
    let parts = named.zip(counts.into_iter().chain([wrong])).filter(|(_, count)| *count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{count} {name}")).collect();
    if parts.is_empty() { "0".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_a_share() {
        assert_eq!("10".parse(), Ok(ErrorLimit::Count(10)));
        assert_eq!("0.1%".parse(), Ok(ErrorLimit::Share(0.001)));
        for text in ["", "-1", "x%", "101%"] {
            assert!(text.parse::<ErrorLimit>().is_err(), "{text}");
        }
        assert!(ErrorLimit::Count(2).allow(2, 2) && !ErrorLimit::Count(2).allow(3, 100));
        assert!(ErrorLimit::Share(0.01).allow(1, 100) && !ErrorLimit::Share(0.01).allow(2, 100));
    }

    #[test]
    fn a_limit_is_printed_as_it_was_typed() {
        for text in ["0", "10", "0.1%", "25%"] {
            assert_eq!(
                text.parse::<ErrorLimit>().map(|errors| errors.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
