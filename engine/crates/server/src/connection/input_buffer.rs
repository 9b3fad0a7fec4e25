//! The input of connections: one buffer for all reads of a thread, and what a connection keeps of it.

/// The buffer that a thread reads into.
const READ_BYTES: usize = 32 * 1024;
/// The first one of a thread that serves one connection: most requests are shorter, and there may be many threads.
const FIRST_READ_BYTES: usize = 1024;
/// The smallest buffer of a connection that has received a part of a request.
const KEPT_BYTES_MIN: usize = 4 * 1024;
/// A thread keeps this number of buffers for replies, each of this length at most.
const REPLIES_MAX: usize = 16;
const REPLY_BYTES_MAX: usize = 64 * 1024;
/// A thread keeps unused buffers of this size in all, so that large values need no new memory.
const SPARE_BYTES_MAX: usize = 2 << 20;

/// The buffers of a thread.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    shared: Vec<u8>,
    /// The length of the shared buffer.
    read_bytes: usize,
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// Buffers for replies, of connections that have none to send now.
    replies: Vec<Vec<u8>>,
}

impl ReadBuffers {
    pub fn new() -> ReadBuffers {
        ReadBuffers { read_bytes: READ_BYTES, ..ReadBuffers::default() }
    }

    /// The buffers of a thread that serves one connection.
    pub fn of_one_connection() -> ReadBuffers {
        ReadBuffers { read_bytes: FIRST_READ_BYTES, ..ReadBuffers::default() }
    }

    /// Read more at a time after a read that filled the shared buffer, once its bytes are carried out or kept.
    pub fn widen_after(&mut self, read: usize) {
        if read == FIRST_READ_BYTES && self.read_bytes == read {
            self.read_bytes = READ_BYTES;
            self.shared = Vec::new();
        }
    }

    /// Lend memory for replies to a connection that has none.
    pub fn lend_replies(&mut self, out: &mut Vec<u8>) {
        if out.capacity() == 0 {
            *out = self.replies.pop().unwrap_or_default();
        }
    }

    /// Take the memory of replies that were sent.
    pub fn return_replies(&mut self, out: &mut Vec<u8>) {
        let mut sent = std::mem::take(out);
        if sent.capacity() > 0 && self.replies.len() < REPLIES_MAX {
            sent.clear();
            sent.shrink_to(REPLY_BYTES_MAX);
            self.replies.push(sent);
        }
    }

    /// The buffer that all connections read into as long as they keep nothing.
    pub fn shared(&mut self) -> &mut [u8] {
        if self.shared.is_empty() {
            self.shared = self.take(self.read_bytes);
        }
        &mut self.shared
    }

    /// A buffer of at least this length.
    fn take(&mut self, least: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| (least..=2 * least.max(READ_BYTES)).contains(&buffer.len());
        match self.spare.iter().rposition(fits) {
            Some(at) => {
                let buffer = self.spare.swap_remove(at);
                self.spare_bytes -= buffer.len();
                buffer
            }
            None => vec![0; least],
        }
    }

    fn give_back(&mut self, buffer: Vec<u8>) {
        // Small ones are cheap to make, and would crowd out the others.
        if buffer.len() >= READ_BYTES && self.spare_bytes + buffer.len() <= SPARE_BYTES_MAX {
            self.spare_bytes += buffer.len();
            self.spare.push(buffer);
        }
    }
}

/// Bytes of a connection that arrived and are not carried out yet. Without any, it has no memory.
#[derive(Debug, Default)]
pub struct InputBuffer {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    /// Where the present request ends, if that is known.
    request_end: usize,
}

impl InputBuffer {
    pub fn is_empty(&self) -> bool {
        self.begin == self.end
    }

    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    /// Whether so much has arrived that the present request may be complete.
    pub fn may_be_complete(&self) -> bool {
        self.end >= self.request_end
    }

    /// Keep the bytes in the shared buffer from `consumed` to `read`. `whole` is the length of the request there,
    /// or 0.
    pub fn keep(&mut self, consumed: usize, read: usize, whole: usize, buffers: &mut ReadBuffers) {
        let rest = consumed..read;
        if rest.is_empty() {
            return;
        }
        let mut bytes = buffers.take(whole.max(rest.len()).max(KEPT_BYTES_MIN));
        bytes[..rest.len()].copy_from_slice(&buffers.shared[rest.clone()]);
        (self.bytes, self.begin, self.end) = (bytes, 0, rest.len());
        self.request_end = self.begin + whole;
    }

    /// The free part, to read into: up to the end of the request, if that is known, so that little has to be moved.
    pub fn free_space(&mut self, buffers: &mut ReadBuffers) -> &mut [u8] {
        self.make_room(1, buffers);
        let most = if self.request_end > self.end { self.request_end } else { self.bytes.len() };
        &mut self.bytes[self.end..most]
    }

    /// Record that `bytes` bytes were read into the free part.
    pub fn add_filled(&mut self, bytes: usize) {
        self.end += bytes;
    }

    /// Note the length of the present request, with the bytes still to append; 0 if it is unknown.
    pub fn expect(&mut self, whole: usize) {
        self.request_end = self.begin + whole;
    }

    /// Append bytes that were read elsewhere.
    pub fn extend(&mut self, bytes: &[u8], buffers: &mut ReadBuffers) {
        self.make_room(bytes.len(), buffers);
        self.bytes[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Remove the bytes that were carried out. `whole` is the length of the request behind them, or 0.
    pub fn consume(&mut self, bytes: usize, whole: usize, buffers: &mut ReadBuffers) {
        self.begin += bytes;
        self.request_end = self.begin + whole;
        if self.is_empty() {
            buffers.give_back(std::mem::take(&mut self.bytes));
            (self.begin, self.end, self.request_end) = (0, 0, 0);
        }
    }

    /// Make room for the rest of the request, and for at least `least` bytes.
    fn make_room(&mut self, least: usize, buffers: &mut ReadBuffers) {
        let needed = self.request_end.max(self.end + least);
        if needed <= self.bytes.len() {
            return;
        }
        let (pending, whole) = (self.begin..self.end, self.request_end.saturating_sub(self.begin));
        let room = (needed - self.begin).max(KEPT_BYTES_MIN);
        // Without a known end the buffer doubles.
        let room = if whole > pending.len() { room } else { room.next_power_of_two() };
        let length = pending.len();
        if room <= self.bytes.len() {
            self.bytes.copy_within(pending, 0);
        } else {
            let mut bytes = buffers.take(room);
            bytes[..length].copy_from_slice(&self.bytes[pending]);
            buffers.give_back(std::mem::replace(&mut self.bytes, bytes));
        }
        (self.begin, self.end, self.request_end) = (0, length, whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read bytes into the shared buffer.
    fn read(bytes: &[u8], buffers: &mut ReadBuffers) -> usize {
        buffers.shared()[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    #[test]
    fn the_rest_of_a_read_is_kept_whatever_its_length() {
        let mut buffers = ReadBuffers::new();
        for (rest, whole) in [(1, 0), (5000, 0), (5000, 100_000), (30_000, 900_000), (9, 300_000)] {
            let bytes: Vec<u8> = (0..7 + rest).map(|n| n as u8).collect();
            let read = read(&bytes, &mut buffers);
            let mut input = InputBuffer::default();
            input.keep(7, read, whole, &mut buffers);
            assert_eq!(input.pending(), &bytes[7..]);
            let mut expected = bytes[7..].to_vec();
            while expected.len() < whole.max(40_000) {
                let space = input.free_space(&mut buffers);
                let filled = space.len().min(3000);
                assert!(filled > 0 && (whole == 0 || space.len() + expected.len() <= whole));
                space[..filled].fill(9);
                input.add_filled(filled);
                expected.resize(expected.len() + filled, 9);
            }
            assert!(input.pending() == expected && input.may_be_complete());
            input.extend(b"xyz", &mut buffers);
            input.consume(expected.len(), 0, &mut buffers);
            assert_eq!(input.pending(), b"xyz");
            input.consume(3, 0, &mut buffers);
            assert!(input.is_empty() && input.bytes.capacity() == 0);
        }
        assert!(buffers.spare_bytes <= SPARE_BYTES_MAX);
    }
}
