//! Every record of a trace in any format, one after the other, for those that only look at it.

use std::path::Path;

use crate::convert::summary;
use crate::events::Events;
use crate::file::{Origin, Record, Summary};
use crate::lines;
use crate::options::ImportOptions;

/// The facts of a trace besides its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadTrace {
    /// The name of the format.
    pub format: &'static str,
    pub origin: Origin,
    /// `records` is how many there were.
    pub summary: Summary,
}

/// Call `each` with every record, in the order of their times, which begin at 0. Only a part of the trace is in memory.
/// An error names the file and the line or block.
pub fn each_record(
    path: &Path,
    options: &ImportOptions,
    mut each: impl FnMut(&Record<'_>),
) -> Result<ReadTrace, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let mut from =
        lines::open(path).map_err(|error| place(format!("it cannot be read: {error}")))?;
    let mut events = Events::open(&mut *from, options).map_err(place)?;
    let (mut records, mut began_ns) = (0, None);
    let timed = events.each_record(|record| {
        let first_ns = *began_ns.get_or_insert(record.at_ns.unwrap_or(0));
        records += 1;
        each(&Record {
            at_ns: record.at_ns.map(|at_ns| at_ns.saturating_sub(first_ns)),
            ..*record
        });
    });
    timed.map_err(place)?;
    let facts = events.facts();
    let origin = facts.origin.clone().unwrap_or_else(|| Origin {
        source: facts.format.to_owned(),
        keys: events.keys(),
        sampled: 1,
    });
    let mut read = summary(facts);
    read.records = records;
    Ok(ReadTrace { format: facts.format, origin, summary: read })
}
