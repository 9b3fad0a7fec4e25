//! How a storage command with a long value begins to receive it.

use crate::commands::context::RequestContext;
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::requests::upload::Upload;

/// Shorter values are collected with their command and copied.
const UPLOAD_BYTES_MIN: usize = 16 * 1024;

/// The destination of a storage command: the key and its item.
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
    let mut upload = Upload::new(state, head, reserved);
    let taken = upload.fill_from(value);
    connection.upload = Some(Box::new(upload));
    Some(Consumed { bytes: head.len() + taken, close: false, waits: true })
}
