//! From lines to events, in each format.

use crate::csv;
use crate::event::TraceEvent;
use crate::format::Format;
use crate::options::ImportOptions;
use crate::watch_log::{LogLine, WatchLog};
use crate::{kvcache, twitter};

pub(crate) enum LineReader {
    Twitter,
    Kvcache(kvcache::Columns),
    Csv(csv::Columns),
    Memcached(WatchLog),
}

impl LineReader {
    /// The reader of a trace that begins with these lines.
    pub(crate) fn new(options: &ImportOptions, first_lines: &[&str]) -> Result<LineReader, String> {
        let first = first_lines.first().copied().unwrap_or_default();
        if let Some(columns) = &options.columns {
            return Ok(LineReader::Csv(columns.clone()));
        }
        let found = Format::guess(first_lines);
        match (options.format, found) {
            (Some(told), Some(found)) if told != found => Err(format!(
                "it looks like {}, but the format was said to be {}: leave out --trace-format",
                found.name(),
                told.name()
            )),
            (Some(format), _) | (None, Some(format)) => LineReader::of(format, first),
            (None, None) => Err(format!(
                "{:?} is not the start of a known format: give the format with --trace-format, or name the columns \
                 with --columns",
                first.chars().take(60).collect::<String>()
            )),
        }
    }

    fn of(format: Format, first: &str) -> Result<LineReader, String> {
        let header = |needs: &str| {
            format!(
                "it must be a header with {needs}; of a file without one, name the columns with --columns"
            )
        };
        match format {
            Format::Twitter => Ok(LineReader::Twitter),
            Format::Memcached => Ok(LineReader::Memcached(WatchLog::default())),
            Format::Kvcache => {
                csv::check_names(first)?;
                kvcache::Columns::of(first)
                    .map(LineReader::Kvcache)
                    .ok_or_else(|| header("key, op, size, op_count and key_size"))
            }
            Format::Csv => {
                csv::check_names(first)?;
                csv::Columns::of(first).map(LineReader::Csv).ok_or_else(|| header("key and op"))
            }
            Format::OracleGeneral => Err("oracleGeneral has no lines".to_owned()),
        }
    }

    pub(crate) fn format_name(&self) -> &'static str {
        match self {
            LineReader::Twitter => Format::Twitter.name(),
            LineReader::Kvcache(_) => Format::Kvcache.name(),
            LineReader::Memcached(_) => Format::Memcached.name(),
            LineReader::Csv(columns) if columns.are_named() => "named columns",
            LineReader::Csv(_) => Format::Csv.name(),
        }
    }

    /// The columns of the header that are not used.
    pub(crate) fn unused_columns(&self, header: &str) -> Vec<String> {
        match self {
            LineReader::Kvcache(_) => kvcache::Columns::unused(header),
            LineReader::Csv(columns) if !columns.are_named() => csv::Columns::unused(header),
            _ => Vec::new(),
        }
    }

    /// Whether a line is not an event: a header, or memcached's reply to `watch`.
    pub(crate) fn is_header(&self, first: bool, line: &str) -> bool {
        match self {
            LineReader::Csv(columns) if columns.are_named() => first && columns.is_header(line),
            LineReader::Kvcache(_) | LineReader::Csv(_) => first,
            LineReader::Memcached(_) => line == "OK",
            LineReader::Twitter => false,
        }
    }

    pub(crate) fn event(&mut self, line: &str) -> Result<LogLine, String> {
        let event: Result<TraceEvent, String> = match self {
            LineReader::Twitter => twitter::event(line),
            LineReader::Kvcache(columns) => columns.event(line),
            LineReader::Csv(columns) => columns.event(line),
            LineReader::Memcached(log) => return log.line(line),
        };
        event.map(LogLine::TraceEvent)
    }

    /// Whether lines may be in another order than operations, which their numbers restore.
    pub(crate) fn is_unordered(&self) -> bool {
        matches!(self, LineReader::Memcached(_))
    }
}
