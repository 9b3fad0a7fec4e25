//! One direction of a connection: bytes that wait until they are due, and its end.

use std::collections::VecDeque;
use std::io;

use cachemark_scripted::monotonic_ns;

use crate::connection::end::End;
use crate::distance::held::Held;

/// How many bytes may wait, before no more are read.
const WAITING_BYTES_MAX: usize = 16 << 20;
/// The memory of a piece besides its bytes.
const PIECE_BYTES: usize = 64;

/// The bytes of one read.
struct Piece {
    read_ns: u64,
    due_ns: u64,
    bytes: Vec<u8>,
}

/// How a direction ends, and when that is due.
#[derive(Clone, Copy)]
struct Ending {
    due_ns: u64,
    resets: bool,
}

/// A queue in the order of arrival. Nothing overtakes, nothing is lost.
#[derive(Default)]
pub struct Way {
    pieces: VecDeque<Piece>,
    /// How many bytes of the first piece are written, and whether its time is counted.
    written: usize,
    is_counted: bool,
    waiting_bytes: usize,
    ending: Option<Ending>,
    /// The end was passed on, or the peer takes no more bytes.
    pub is_done: bool,
    /// The last time that `new_timer` returned.
    timer_ns: u64,
}

impl Way {
    pub fn has_room(&self) -> bool {
        self.waiting_bytes < WAITING_BYTES_MAX
    }

    /// Take bytes that were read now.
    pub fn add(&mut self, bytes: &[u8], read_ns: u64, due_ns: u64) {
        if self.is_done {
            return;
        }
        // Not before those that came before.
        let due_ns = self.pieces.back().map_or(due_ns, |last| due_ns.max(last.due_ns));
        self.waiting_bytes += bytes.len() + PIECE_BYTES;
        self.pieces.push_back(Piece { read_ns, due_ns, bytes: bytes.to_vec() });
    }

    /// The sender has sent everything, or has reset the connection.
    pub fn end(&mut self, due_ns: u64, resets: bool) {
        self.ending.get_or_insert(Ending { due_ns, resets });
    }

    /// The peer takes no more bytes.
    pub fn abandon(&mut self) {
        self.pieces.clear();
        self.waiting_bytes = 0;
        self.is_done = true;
    }

    /// When there is something to do; `None` if that is known already, or nothing waits.
    pub fn new_timer(&mut self) -> Option<u64> {
        let ending_ns = self.ending.filter(|_| !self.is_done).map(|ending| ending.due_ns);
        let due_ns = self.pieces.front().map(|piece| piece.due_ns).or(ending_ns)?;
        (std::mem::replace(&mut self.timer_ns, due_ns) != due_ns).then_some(due_ns)
    }

    /// Write what is due. Returns whether the connection is to be reset now.
    pub fn write_to(&mut self, end: &mut End, held: &mut Held) -> io::Result<bool> {
        while let Some(piece) = self.pieces.front() {
            let now_ns = monotonic_ns();
            if piece.due_ns > now_ns {
                return Ok(false);
            }
            if !std::mem::replace(&mut self.is_counted, true) {
                held.add(now_ns - piece.read_ns, piece.bytes.len());
            }
            let written = end.write(&piece.bytes[self.written..])?;
            if written == 0 {
                return Ok(false);
            }
            self.written += written;
            if self.written == piece.bytes.len() {
                self.waiting_bytes -= piece.bytes.len() + PIECE_BYTES;
                (self.written, self.is_counted) = (0, false);
                self.pieces.pop_front();
            }
        }
        let Some(ending) = self.ending.filter(|ending| ending.due_ns <= monotonic_ns()) else {
            return Ok(false);
        };
        if !std::mem::replace(&mut self.is_done, true) && !ending.resets {
            end.finish();
        }
        Ok(ending.resets)
    }
}
