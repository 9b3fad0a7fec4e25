//! A long value that arrives straight in the memory of its item.

use std::sync::Arc;

use cachemark_storage::Reservation;

use crate::state::server_state::State;

/// A storage command whose value has not arrived completely.
pub struct Upload {
    state: Arc<State>,
    /// The command without its value.
    pub head: Vec<u8>,
    reservation: Option<Reservation>,
    filled: usize,
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "Upload({} bytes so far)", self.filled)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(reservation) = &self.reservation {
            self.state.store.release(reservation, self.state.now_s());
        }
    }
}

impl Upload {
    /// The value of the command with this head, into this memory.
    pub fn new(state: Arc<State>, head: &[u8], reservation: Reservation) -> Upload {
        Upload { state, head: head.to_vec(), reservation: Some(reservation), filled: 0 }
    }

    /// The part of the value that has not arrived.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.reservation {
            Some(reservation) => &mut reservation.value()[self.filled..],
            None => &mut [],
        }
    }

    /// Record that `bytes` bytes were written there.
    pub fn add_filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Copy as much of the input as belongs to the value. Returns how much that was.
    pub fn fill_from(&mut self, input: &[u8]) -> usize {
        let space = self.space();
        let taken = space.len().min(input.len());
        space[..taken].copy_from_slice(&input[..taken]);
        self.filled += taken;
        taken
    }

    pub fn is_complete(&mut self) -> bool {
        self.space().is_empty()
    }

    /// The item, to be stored.
    pub fn take_reservation(&mut self) -> Option<Reservation> {
        self.reservation.take()
    }
}
