//! The formats of traces.

use std::str::FromStr;

use crate::{csv, kvcache};

/// The format of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Twitter's cache traces.
    Twitter,
    /// CacheLib's traces of Meta's key-value cache.
    Kvcache,
    /// The output of memcached's `watch fetchers mutations`.
    Memcached,
    /// CSV with a header.
    Csv,
    /// libCacheSim's binary format, which nothing in the file shows.
    OracleGeneral,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::Twitter => "twitter",
            Format::Kvcache => "kvcache",
            Format::Memcached => "memcached",
            Format::Csv => "csv",
            Format::OracleGeneral => "oracleGeneral",
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "twitter" => Ok(Format::Twitter),
            "kvcache" => Ok(Format::Kvcache),
            "memcached" => Ok(Format::Memcached),
            "csv" => Ok(Format::Csv),
            "oracleGeneral" => Ok(Format::OracleGeneral),
            _ => Err(format!(
                "unknown format {text:?}: use twitter, kvcache, memcached, csv or oracleGeneral"
            )),
        }
    }
}

impl Format {
    /// Recognise the format from the first lines: a header is the first of them, and a log may begin with a part of a
    /// line.
    pub(crate) fn guess(first_lines: &[&str]) -> Option<Format> {
        first_lines.iter().enumerate().find_map(|(at, line)| {
            let format = Format::of_line(line)?;
            let has_header = matches!(format, Format::Kvcache | Format::Csv);
            (at == 0 || !has_header).then_some(format)
        })
    }

    fn of_line(first: &str) -> Option<Format> {
        if first.starts_with("ts=") || first.starts_with("skipped=") || first == "OK" {
            Some(Format::Memcached)
        } else if kvcache::Columns::of(first).is_some() {
            Some(Format::Kvcache)
        } else if csv::Columns::of(first).is_some() {
            Some(Format::Csv)
        } else if crate::twitter::event(first).is_ok() {
            Some(Format::Twitter)
        } else {
            None
        }
    }
}
