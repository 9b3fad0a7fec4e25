//! The items of a store as lines of JSON.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cachemark_storage::Store;
use serde::Serialize;

use crate::clock::now_s;

/// A line. Keys and values that are no UTF-8 are in base64, and their fields are named so.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    flags: u32,
    /// Seconds since the epoch; 0 means never.
    expires_s: u32,
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<String>,
}

/// Write a line for each item, in no particular order; returns how many. Items that are stored or moved
/// meanwhile may appear twice or not at all.
pub fn write_items(store: &Store, values: bool, out: &mut impl Write) -> io::Result<u64> {
    let (mut items, mut part, mut lines) = (0, Some(0), Vec::new());
    while let Some(number) = part {
        // A part of the store is locked while it is read, so nothing is written to a slow file then.
        part = store.for_each_in_part(number, now_s(), |key, item| {
            let (key, key_base64) = text_or_base64(key);
            let (value, value_base64) =
                if values { text_or_base64(item.value) } else { (None, None) };
            let (flags, expires_s, bytes) = (item.flags, item.expires_s, item.value.len());
            let line = Line { key, key_base64, flags, expires_s, bytes, value, value_base64 };
            serde_json::to_writer(&mut lines, &line).expect("a vector takes everything");
            lines.push(b'\n');
            items += 1;
        });
        out.write_all(&lines)?;
        lines.clear();
    }
    out.flush()?;
    Ok(items)
}

fn text_or_base64(bytes: &[u8]) -> (Option<&str>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}
