//! Where requests and replies begin and end in a stream of bytes.

pub mod framer;
pub mod replies;
pub mod requests;

/// The kind of the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scan<W> {
    /// The end of the frame is not known yet.
    Incomplete,
    /// A frame of this many bytes, of which some may not have arrived.
    Frame { bytes: usize, what: W },
    /// No frame of a protocol that is known.
    Unknown,
}

/// One direction of a connection: it finds the first frame of bytes.
pub trait Grammar {
    type What: Copy;

    fn scan(&mut self, bytes: &[u8]) -> Scan<Self::What>;
}
