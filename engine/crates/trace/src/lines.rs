//! The lines of a trace.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::unpack::{BUFFER_BYTES, unpacked};

/// The maximum length of a line.
const MAX_LINE_BYTES: u64 = 64 * 1024;
/// Files with more are no traces.
const MOST_EMPTY: u64 = 10_000;
/// The format is recognised from this number of lines.
const LOOK_AHEAD: usize = 16;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Open a trace, which may be packed.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    unpacked(BufReader::with_capacity(BUFFER_BYTES, File::open(path)?))
}

/// The lines that are not empty, with their numbers.
pub(crate) struct Lines<'a> {
    from: &'a mut dyn BufRead,
    /// Lines that were read ahead.
    ahead: VecDeque<Line>,
    /// Why no more lines could be read ahead.
    failed: Option<String>,
    /// How many lines were read from the file.
    number: u64,
}

/// A line without its end, and its number in the file.
pub(crate) struct Line {
    pub number: u64,
    pub text: String,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(from: &'a mut dyn BufRead) -> Lines<'a> {
        Lines { from, ahead: VecDeque::new(), failed: None, number: 0 }
    }

    /// The first lines, which are read again afterwards. An error behind the first line comes when it is reached.
    pub(crate) fn first(&mut self) -> Result<Vec<&str>, String> {
        while self.ahead.len() < LOOK_AHEAD {
            match self.read() {
                Ok(Some(line)) => self.ahead.push_back(line),
                Ok(None) => break,
                Err(error) if self.ahead.is_empty() => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok(self.ahead.iter().map(|line| line.text.as_str()).collect())
    }

    /// The number of the first line that is not empty.
    pub(crate) fn first_number(&self) -> u64 {
        self.ahead.front().map_or(1, |line| line.number)
    }

    /// The next line; `None` after the last one. An error names the line.
    pub(crate) fn next(&mut self) -> Result<Option<Line>, String> {
        match (self.ahead.pop_front(), self.failed.take()) {
            (Some(line), failed) => {
                self.failed = failed;
                Ok(Some(line))
            }
            (None, Some(error)) => Err(error),
            (None, None) => self.read(),
        }
    }

    fn read(&mut self) -> Result<Option<Line>, String> {
        for _ in 0..MOST_EMPTY {
            let Some(text) = self.read_any()? else { return Ok(None) };
            if !text.trim().is_empty() {
                return Ok(Some(Line { number: self.number, text }));
            }
        }
        Err(format!("line {}: {MOST_EMPTY} empty lines: this is no trace", self.number))
    }

    fn read_any(&mut self) -> Result<Option<String>, String> {
        let number = self.number + 1;
        let at = |error: String| format!("line {number}: {error}");
        let mut bytes = Vec::new();
        Read::take(&mut self.from, MAX_LINE_BYTES + 1)
            .read_until(b'\n', &mut bytes)
            .map_err(|error| at(format!("it cannot be read: {error}")))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        self.number = number;
        let is_packed = || NO_TEXTS.iter().any(|(begin, _)| bytes.starts_with(begin));
        let is_binary = bytes.contains(&0) || is_packed();
        if number == 1 && !is_binary && bytes.trim_ascii_end().contains(&b'\r') {
            return Err(at(CR_ALONE.to_owned()));
        }
        if bytes.len() as u64 > MAX_LINE_BYTES {
            if number == 1 && bytes.contains(&0) {
                return Err(at(no_text(&bytes)));
            }
            return Err(at(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        if number == 1 && (is_binary || std::str::from_utf8(&bytes).is_err()) {
            return Err(at(no_text(&bytes)));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| at("it is not UTF-8".to_owned()))?;
        let text =
            if number == 1 { text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text) } else { text };
        Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
    }
}

/// The first bytes of files that are often taken for a trace, and how a trace is made of each.
const NO_TEXTS: [(&[u8], &str); 9] = [
    (b"BZh", "it is packed by bzip2: unpack it by bunzip2, or pack it by gzip or zstd"),
    (b"\xfd7zXZ\0", "it is packed by xz: unpack it by unxz, or pack it by gzip or zstd"),
    (b"\x04\x22\x4d\x18", "it is packed by lz4: unpack it by unlz4, or pack it by gzip or zstd"),
    (b"PK\x03\x04", "it is a zip archive: unpack it by unzip"),
    (b"7z\xbc\xaf\x27\x1c", "it is a 7-Zip archive: unpack it"),
    (b"PAR1", "it is a Parquet file: write it as CSV first"),
    (b"\xff\xfe\0\0", "it is UTF-32: write it as UTF-8 by iconv -f UTF-32 -t UTF-8"),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
];
const CR_ALONE: &str = "its lines end with CR alone: write them with LF by tr '\\r' '\\n'";
const UTF_16: &str = "it is UTF-16: write it as UTF-8 by iconv -f UTF-16 -t UTF-8";
/// A tar archive has this at byte 257.
const TAR: &[u8] = b"ustar";

/// The type of a file whose first line is no text, with the remedy.
fn no_text(bytes: &[u8]) -> String {
    let known = NO_TEXTS.iter().find(|(begin, _)| bytes.starts_with(begin));
    if let Some((_, text)) = known {
        return (*text).to_owned();
    }
    match bytes {
        _ if bytes.get(257..).is_some_and(|rest| rest.starts_with(TAR)) => {
            "it is a tar archive: unpack it by tar -xf".to_owned()
        }
        [1..=255, 0, 1..=255, 0, ..] => UTF_16.replace("UTF-16 -t", "UTF-16LE -t"),
        [0, 1..=255, 0, 1..=255, ..] => UTF_16.replace("UTF-16 -t", "UTF-16BE -t"),
        _ => "it is not UTF-8, so no text: a binary trace needs its format (--trace-format)"
            .to_owned(),
    }
}
