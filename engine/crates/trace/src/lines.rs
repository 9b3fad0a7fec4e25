//! The lines of a trace: a plain file, or one that is compressed with zstd or gzip.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

/// The maximum length of a line.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// Open a trace. Its first bytes show the compression.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let begins = file.fill_buf()?;
    if begins.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let unpacked = StreamingDecoder::new(file).map_err(io::Error::other)?;
        return Ok(Box::new(BufReader::with_capacity(1 << 20, unpacked)));
    }
    if begins.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(1 << 20, MultiGzDecoder::new(file))));
    }
    Ok(Box::new(file))
}

/// Read the next line into `line`, without its end. False after the last line.
pub(crate) fn next(from: &mut dyn BufRead, line: &mut String) -> Result<bool, String> {
    line.clear();
    let mut bytes = Vec::new();
    from.take(MAX_LINE_BYTES + 1)
        .read_until(b'\n', &mut bytes)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_LINE_BYTES {
        return Err(format!("longer than {MAX_LINE_BYTES} bytes"));
    }
    let whole = std::str::from_utf8(&bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    line.push_str(whole.trim_end_matches(['\n', '\r']));
    Ok(!bytes.is_empty())
}
