//! The input of a connection.

/// Bytes that arrived and are not carried out yet.
#[derive(Debug)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    filled: usize,
}

const INITIAL_BYTES: usize = 16 * 1024;

impl InputBuffer {
    pub fn new() -> InputBuffer {
        InputBuffer { bytes: vec![0; INITIAL_BYTES], filled: 0 }
    }

    /// The free part, to read into. The buffer grows if a command is longer than it.
    pub fn free_space(&mut self) -> &mut [u8] {
        if self.filled == self.bytes.len() {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// So many bytes were read into the free part.
    pub fn add_filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Append bytes that were read elsewhere.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.bytes.len() - self.filled < bytes.len() {
            self.bytes.resize((self.filled + bytes.len()).next_power_of_two(), 0);
        }
        self.bytes[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    pub fn pending(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }

    /// Remove the bytes that were carried out. A buffer that grew for a large value shrinks again.
    pub fn consume(&mut self, bytes: usize) {
        self.bytes.copy_within(bytes..self.filled, 0);
        self.filled -= bytes;
        if self.filled == 0 && self.bytes.len() > 4 * INITIAL_BYTES {
            self.bytes = vec![0; INITIAL_BYTES];
        }
    }
}
