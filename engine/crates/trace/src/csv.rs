//! Tables: CSV with a header (`op` and `key`, and optionally `time`, `size`, `ttl`, `key_size` and `count`), and files without one, whose
//! columns the user names.

use std::borrow::Cow;
use std::str::FromStr;

use crate::event::{
    Action, TimeUnit, TraceEvent, action, count, exptime, foreign_action, length, number, time,
};
use cachemark_tape::Verb;

/// The position of each column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    key: usize,
    op: Option<usize>,
    time: Option<(usize, TimeUnit)>,
    size: Option<usize>,
    ttl: Option<usize>,
    key_size: Option<usize>,
    count: Option<usize>,
    fields: usize,
    separator: Separator,
    /// The columns are the user's: operations may have the names of other systems.
    named: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Separator {
    #[default]
    Comma,
    Semicolon,
    Tab,
    /// Any number of spaces or tabs.
    Space,
}

impl Separator {
    /// That of a line, or of names of columns.
    fn of(text: &str) -> Separator {
        let has = |separator| text.contains(separator);
        match () {
            () if has(',') => Separator::Comma,
            () if has(';') => Separator::Semicolon,
            () if has('\t') => Separator::Tab,
            () => Separator::Space,
        }
    }

    fn split(self, line: &str) -> Vec<Cow<'_, str>> {
        let separator = match self {
            Separator::Comma => ',',
            Separator::Semicolon => ';',
            Separator::Tab => '\t',
            Separator::Space => return line.split_whitespace().map(Cow::from).collect(),
        };
        if !line.contains(QUOTE) {
            return line.split(separator).map(|field| field.trim().into()).collect();
        }
        let (mut fields, mut rest) = (Vec::new(), Some(line));
        while let Some(text) = rest {
            let field;
            (field, rest) = next_field(text, separator);
            fields.push(field);
        }
        fields
    }
}

const QUOTE: char = '"';

/// The first field of a line, and what is behind its separator. In a field between quotes, a separator is text, and two
/// quotes are one (RFC 4180).
fn next_field(text: &str, separator: char) -> (Cow<'_, str>, Option<&str>) {
    if let Some(inside) = text.trim_start().strip_prefix(QUOTE) {
        let mut quotes = inside.match_indices(QUOTE).map(|(at, _)| at).peekable();
        while let Some(at) = quotes.next() {
            if quotes.next_if_eq(&(at + 1)).is_some() {
                continue;
            }
            let field = inside[..at].replace("\"\"", "\"").into();
            match inside[at + 1..].trim_start() {
                "" => return (field, None),
                rest if rest.starts_with(separator) => return (field, Some(&rest[1..])),
                // The quote is a part of the text.
                _ => break,
            }
        }
    }
    match text.split_once(separator) {
        Some((field, rest)) => (field.trim().into(), Some(rest)),
        None => (text.trim().into(), None),
    }
}

/// A text as a field of CSV.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', QUOTE]) {
        format!("\"{}\"", text.replace(QUOTE, "\"\"")).into()
    } else {
        text.into()
    }
}

const NAMES: [&str; 7] = ["key", "op", "time", "size", "ttl", "key_size", "count"];

/// The positions of columns by name; `None` if a required column is missing.
pub(crate) fn column_positions<const N: usize>(
    header: &str,
    names: [&str; N],
) -> [Option<usize>; N] {
    let columns: Vec<&str> = header.split(',').map(str::trim).collect();
    names.map(|name| columns.iter().position(|column| column.eq_ignore_ascii_case(name)))
}

/// Refuse a header that names a column twice: one of them would be ignored.
pub(crate) fn check_names(header: &str) -> Result<(), String> {
    let names: Vec<String> = header.split(',').map(|it| it.trim().to_ascii_lowercase()).collect();
    let twice = |(at, name): &(usize, &String)| !name.is_empty() && names[..*at].contains(name);
    match names.iter().enumerate().find(twice) {
        Some((_, name)) => {
            Err(format!("the header names {name:?} twice: name the columns with --columns"))
        }
        None => Ok(()),
    }
}

/// The columns of a header with other names.
pub(crate) fn unused_columns(header: &str, names: &[&str]) -> Vec<String> {
    let unused = |column: &&str| !names.iter().any(|name| name.eq_ignore_ascii_case(column));
    header.split(',').map(str::trim).filter(unused).map(str::to_owned).collect()
}

const SYNTAX: &str = "name each column of the file, such as time:ms,op,key,size: time (in s; :ms, :us, :100ns and \
                      :ns are others), op, key, size, ttl, key_size, count, and - for one that is not used; with \
                      the separator of the file: a comma, a semicolon, or spaces";

impl FromStr for Columns {
    type Err = String;

    /// Parse names of columns. Without `op`, each line is a get.
    fn from_str(text: &str) -> Result<Columns, String> {
        let separator = Separator::of(text);
        let names = separator.split(text);
        let mut columns =
            Columns { separator, fields: names.len(), named: true, ..Columns::default() };
        let mut seen: Vec<&str> = Vec::new();
        for (at, name) in names.iter().map(|name| &**name).enumerate() {
            let (name, unit) = name.split_once(':').map_or((name, None), |(a, b)| (a, Some(b)));
            let unit = unit.map_or(Some(TimeUnit::SECONDS), TimeUnit::named);
            if name != "-" && seen.contains(&name) {
                return Err(format!("{name} is named twice: {SYNTAX}"));
            }
            seen.push(name);
            match (name, unit) {
                ("time", Some(unit)) => columns.time = Some((at, unit)),
                ("key", _) => columns.key = at,
                ("op", _) => columns.op = Some(at),
                ("size", _) => columns.size = Some(at),
                ("ttl", _) => columns.ttl = Some(at),
                ("key_size", _) => columns.key_size = Some(at),
                ("count", _) => columns.count = Some(at),
                ("-", _) => {}
                _ => return Err(format!("{name:?} is no column: {SYNTAX}")),
            }
        }
        if seen.contains(&"key") { Ok(columns) } else { Err(format!("no key: {SYNTAX}")) }
    }
}

impl Columns {
    pub(crate) fn of(header: &str) -> Option<Columns> {
        let [key, op, time, size, ttl, key_size, count] = column_positions(header, NAMES);
        Some(Columns {
            key: key?,
            op: Some(op?),
            time: time.map(|at| (at, TimeUnit::SECONDS)),
            size,
            ttl,
            key_size,
            count,
            fields: header.split(',').count(),
            ..Columns::default()
        })
    }

    pub(crate) fn are_named(&self) -> bool {
        self.named
    }

    /// The columns of the header that are not used.
    pub(crate) fn unused(header: &str) -> Vec<String> {
        unused_columns(header, &NAMES)
    }

    /// Whether a first line cannot be an event of these columns, because it has names where numbers should be.
    pub(crate) fn is_header(&self, line: &str) -> bool {
        let fields = self.separator.split(line);
        let numbers = [self.time.map(|(at, _)| at), self.size, self.ttl, self.key_size, self.count];
        let is_name = |at: usize| {
            fields
                .get(at)
                .is_some_and(|text| text.starts_with(|c: char| c.is_alphabetic() || c == '#'))
        };
        self.named && numbers.into_iter().flatten().any(is_name)
    }

    /// The least number of fields of a line. Between spaces no field can be empty, so that optional ones at the end
    /// are missing, as IBM's traces have it.
    fn least(&self) -> usize {
        if self.separator != Separator::Space {
            return self.fields;
        }
        let needed = [Some(self.key), self.op, self.time.map(|(at, _)| at)];
        needed.into_iter().flatten().max().map_or(self.fields, |last| last + 1)
    }

    pub(crate) fn event(&self, line: &str) -> Result<TraceEvent, String> {
        let fields = self.separator.split(line);
        if fields.len() > self.fields || fields.len() < self.least() {
            let whose = if self.named { "--columns names" } else { "the header has" };
            return Err(format!("{} fields, {whose} {}", fields.len(), self.fields));
        }
        let given = |at: Option<usize>| {
            fields.get(at?).map(|text| &**text).filter(|text: &&str| !text.is_empty())
        };
        let at_ns = match self.time {
            Some((at, unit)) => given(Some(at)).map(|text| time(text, unit)).transpose()?,
            None => None,
        };
        let whole_size =
            |text| number(text, "key size", u64::from(u32::MAX)).map(|size| size as u32);
        Ok(TraceEvent {
            at_ns,
            number: 0,
            key: fields[self.key].to_string(),
            key_bytes: given(self.key_size).map(whole_size).transpose()?,
            action: match given(self.op) {
                Some(name) if self.named => foreign_action(name)?,
                None if self.named => Action::Do(Verb::Get),
                name => action(name.unwrap_or_default())?,
            },
            length: given(self.size).map(length).transpose()?,
            exptime_s: given(self.ttl).map_or(Ok(0), exptime)?,
            count: given(self.count).map_or(Ok(1), count)?,
            client: None,
            succeeded: None,
            joined: false,
        })
    }
}
