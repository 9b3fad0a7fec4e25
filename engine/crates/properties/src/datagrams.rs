//! UDP requests: there is no reply, or its frames put together are the reply of a session.

use cachemark_server::answer_datagram;

use crate::{NOW_S, session};

const FRAME_BYTES: usize = 8;
const DATAGRAM_BYTES_MAX: usize = 1400;

/// Answer a datagram and compare the joined frames with a session's reply.
pub fn framed_like_a_session(datagram: &[u8]) {
    let Some(frames) = answer_datagram(datagram, &session::with_items(), NOW_S) else {
        return;
    };
    let frames: Vec<Vec<u8>> = frames.collect();
    let (frame, request) = datagram.split_at(FRAME_BYTES);
    let mut joined = Vec::new();
    for (number, part) in frames.iter().enumerate() {
        assert!((FRAME_BYTES + 1..=DATAGRAM_BYTES_MAX).contains(&part.len()));
        assert_eq!(part[..2], frame[..2], "the request id");
        assert_eq!(usize::from(u16::from_be_bytes([part[2], part[3]])), number);
        assert_eq!(usize::from(u16::from_be_bytes([part[4], part[5]])), frames.len());
        assert_eq!(part[6..FRAME_BYTES], [0, 0]);
        joined.extend_from_slice(&part[FRAME_BYTES..]);
    }
    let expected = session::replies(&session::with_items(), request, || usize::MAX);
    let binary = request[0] == 0x80;
    let comparable = |said| session::comparable(said, binary).escape_ascii().to_string();
    assert_eq!(comparable(&joined), comparable(&expected));
}
