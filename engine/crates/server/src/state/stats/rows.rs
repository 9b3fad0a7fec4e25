//! The rows of a topic of `stats`.

use std::borrow::Cow;

/// A name and its value, in memcached's form.
pub type Row = (Cow<'static, str>, String);

pub fn row(name: impl Into<Cow<'static, str>>, value: impl ToString) -> Row {
    (name.into(), value.to_string())
}

pub fn rows<const N: usize>(numbers: [(&'static str, u64); N]) -> impl Iterator<Item = Row> {
    numbers.into_iter().map(|(name, value)| row(name, value))
}

/// Rows that memcached prints and that count nothing here, because this server has nothing of the kind.
pub fn zeros<const N: usize>(names: [&'static str; N]) -> impl Iterator<Item = Row> {
    names.into_iter().map(|name| row(name, 0))
}

pub fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
