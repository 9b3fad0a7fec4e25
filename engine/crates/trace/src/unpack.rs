//! Packed traces: gzip members and zstd frames, all of them, each with its checksum.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The three last bytes of the magic number of a frame that holds no data. The first one is 0x50 to 0x5f.
const ZSTD_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];
/// More is no faster.
pub(crate) const BUFFER_BYTES: usize = 1 << 17;
/// The most bytes that a packed byte may become. Real traces become 5 to 100.
const MOST_RATIO: u64 = 1000;
/// This many bytes may come from very few: a frame of the same byte.
const FREE_BYTES: u64 = 1 << 20;
const MOST_TIME: Duration = Duration::from_secs(1800);

/// Read a trace, unpacked. Its first bytes show how it is packed.
pub fn unpacked(mut file: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let begins = file.fill_buf()?;
    let (gzip, zstd) = (begins.starts_with(&GZIP), is_zstd(begins));
    if !gzip && !zstd {
        return Ok(Box::new(file));
    }
    let packed_bytes = Rc::new(Cell::new(0));
    let packed = Counted { from: file, bytes: Rc::clone(&packed_bytes) };
    let content: Box<dyn Read> =
        if gzip { Box::new(MultiGzDecoder::new(packed)) } else { Box::new(Frames::new(packed)) };
    let limited =
        Limited { from: content, packed_bytes, bytes: 0, until: Instant::now() + MOST_TIME };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, limited)))
}

fn is_zstd(begins: &[u8]) -> bool {
    let skippable = begins.len() > 3 && begins[0] & 0xf0 == 0x50 && begins[1..4] == ZSTD_SKIPPABLE;
    begins.starts_with(&ZSTD) || skippable
}

fn broken(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Counts the packed bytes.
struct Counted<R> {
    from: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.from.consume(bytes);
    }
}

/// Refuses content that is far larger than its archive, or that takes too long.
struct Limited {
    from: Box<dyn Read>,
    packed_bytes: Rc<Cell<u64>>,
    bytes: u64,
    until: Instant,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => broken("the packed file is cut off"),
            _ => error,
        })?;
        self.bytes += read as u64;
        if self.bytes > FREE_BYTES + MOST_RATIO * self.packed_bytes.get() {
            return Err(broken(format!(
                "its content is more than {MOST_RATIO} times as large as the packed file, as no trace is"
            )));
        }
        if Instant::now() > self.until {
            let minutes = MOST_TIME.as_secs() / 60;
            return Err(broken(format!(
                "unpacking took more than {minutes} minutes: use fewer --ops, or unpack it first"
            )));
        }
        Ok(read)
    }
}

/// The frames of a zstd file, one after the other.
struct Frames<R> {
    from: R,
    decoder: FrameDecoder,
    /// Whether the decoder is in a frame.
    within: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(from: R) -> Frames<R> {
        Frames { from, decoder: FrameDecoder::new(), within: false }
    }

    /// Begin the next frame with data; false at the end of the file.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.from.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.from) {
                Ok(()) => {
                    self.within = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => skip(&mut self.from, u64::from(length))?,
                Err(_) => return Err(self.damaged()),
            }
        }
        Ok(false)
    }

    /// What is wrong with the file: the decoder's own words name its parts.
    fn damaged(&mut self) -> io::Error {
        match self.from.fill_buf() {
            Ok([]) => io::ErrorKind::UnexpectedEof.into(),
            Ok(_) => broken("a zstd frame is damaged"),
            Err(error) => error,
        }
    }

    fn check(&self) -> io::Result<()> {
        let (told, found) =
            (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum());
        if told.is_some() && told != found {
            return Err(broken("the checksum of a zstd frame is wrong: the file is damaged"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            let ended = self.decoder.is_finished();
            if self.decoder.can_collect() == 0 {
                if ended {
                    self.check()?;
                    self.within = false;
                } else {
                    let some = BlockDecodingStrategy::UptoBytes(into.len().max(1));
                    let decoded = self.decoder.decode_blocks(&mut self.from, some);
                    if decoded.is_err() {
                        return Err(self.damaged());
                    }
                }
                continue;
            }
            return self.decoder.read(into);
        }
    }
}

fn skip(from: &mut impl BufRead, bytes: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.take(bytes), &mut io::sink())?;
    if skipped == bytes { Ok(()) } else { Err(broken("the file ends within a zstd frame")) }
}
