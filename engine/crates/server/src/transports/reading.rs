//! Where a connection's bytes are read to: into the item of a long value, into what the connection keeps, or into the
//! buffer that all connections of a thread share.

use std::io;

use crate::connection::input_buffer::{InputBuffer, ReadBuffers};
use crate::connection::stream::Stream;
use crate::session::Session;

/// How much of what follows a long value is read with it: the next command, and little that would have to be copied.
const BEHIND_VALUE_BYTES: usize = 4 * 1024;

/// The result of one read.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// All bytes; 0 at the end of the connection.
    pub bytes: usize,
    /// How many of them are in the shared buffer, to be fed to the session.
    pub shared: usize,
}

/// Read once.
pub fn read(
    stream: &mut Stream,
    session: &mut Session,
    input: &mut InputBuffer,
    buffers: &mut ReadBuffers,
) -> io::Result<Received> {
    if !input.is_empty() {
        let bytes = stream.read(input.free_space(buffers))?;
        input.add_filled(bytes);
        return Ok(Received { bytes, shared: 0 });
    }
    let Some(value) = session.upload_space() else {
        // The part of a long value that is read here has to be copied.
        let most = if session.expects_upload() { BEHIND_VALUE_BYTES } else { usize::MAX };
        let shared = buffers.shared();
        let most = most.min(shared.len());
        let bytes = stream.read(&mut shared[..most])?;
        return Ok(Received { bytes, shared: bytes });
    };
    let missing = value.len();
    let behind = buffers.shared();
    let most = BEHIND_VALUE_BYTES.min(behind.len());
    let bytes = stream.read_both(value, &mut behind[..most])?;
    let of_value = bytes.min(missing);
    session.uploaded(of_value);
    Ok(Received { bytes, shared: bytes - of_value })
}
