//! A long value that arrives straight in the memory of its item.

use std::sync::Arc;

use cachemark_storage::Reservation;

use crate::commands::context::RequestContext;
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::state::server_state::State;

/// Shorter values are collected with their command and copied.
const UPLOAD_BYTES_MIN: usize = 16 * 1024;

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

/// What a storage command stores: the key and its item.
pub struct Destination<'a> {
    pub key: &'a [u8],
    pub flags: u32,
    pub exptime: i64,
    pub length: usize,
}

/// Begin an upload if the value is long: the command's head has `head` bytes of the input, and all else of it is value.
/// `None` if the value must be collected.
pub fn begin(
    to: &Destination<'_>,
    head: usize,
    input: &[u8],
    connection: &mut ConnectionState,
    context: &RequestContext<'_>,
) -> Option<Consumed> {
    if to.length < UPLOAD_BYTES_MIN || connection.socket.is_none() {
        return None;
    }
    let state = context.state.itself()?;
    let store = &context.state.store;
    let reserved = store.reserve(to.key, to.flags, to.exptime, to.length, context.now_s)?;
    let (head, value) = input.split_at(head);
    let reservation = Some(reserved);
    let mut upload = Upload { state, head: head.to_vec(), reservation, filled: 0 };
    let taken = upload.fill_from(value);
    connection.upload = Some(Box::new(upload));
    Some(Consumed { bytes: head.len() + taken, close: false, waits: true })
}

impl Upload {
    /// The part of the value that has not arrived.
    pub fn space(&mut self) -> &mut [u8] {
        match &mut self.reservation {
            Some(reservation) => &mut reservation.value()[self.filled..],
            None => &mut [],
        }
    }

    /// So many bytes were written there.
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
