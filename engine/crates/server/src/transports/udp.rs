//! UDP: each request is one datagram with a frame header of 8 bytes; its reply may be several. (memcached's
//! doc/protocol.txt, "UDP protocol".)

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;

use crate::session::Session;
use crate::state::server_state::State;

const FRAME_BYTES: usize = 8;
/// A datagram of a reply, with its frame header.
const DATAGRAM_BYTES_MAX: usize = 1400;
const REQUEST_BYTES_MAX: usize = 65_536;
const DATAGRAMS_AT_ONCE: usize = 64;
/// Frames are counted in 16 bits.
const REPLY_BYTES_MAX: usize = (DATAGRAM_BYTES_MAX - FRAME_BYTES) * u16::MAX as usize;

/// A thread that answers the datagrams of one socket.
pub struct UdpThread {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl UdpThread {
    pub fn start(socket: UdpSocket, state: &Arc<State>) -> io::Result<UdpThread> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        socket.set_nonblocking(true)?;
        let (state, woken) = (Arc::clone(state), Arc::clone(&wake));
        let name = "datagrams".to_owned();
        let thread = thread::Builder::new().name(name).spawn(move || {
            run(&socket, &woken, &state);
        })?;
        Ok(UdpThread { wake, thread: Some(thread) })
    }

    pub fn stop(&mut self) {
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
    }
}

fn run(socket: &UdpSocket, wake: &OwnedFd, state: &State) {
    let mut buffer = vec![0; REQUEST_BYTES_MAX];
    loop {
        let mut sources = [PollFd::new(socket, PollFlags::IN), PollFd::new(wake, PollFlags::IN)];
        if poll(&mut sources, None).is_err_and(|error| error != rustix::io::Errno::INTR)
            || !sources[1].revents().is_empty()
        {
            return;
        }
        // Only a limited number, so that the order to stop is noticed between them.
        for _ in 0..DATAGRAMS_AT_ONCE {
            // Nothing to read, or an error of an earlier peer: the next datagram is not affected.
            let Ok((bytes, from)) = socket.recv_from(&mut buffer) else { break };
            state.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
            answer(socket, &buffer[..bytes], from, state);
        }
    }
}

fn answer(socket: &UdpSocket, datagram: &[u8], to: SocketAddr, state: &State) {
    for frame in answer_datagram(datagram, state, state.now_s()).into_iter().flatten() {
        // A datagram that cannot be sent is lost, as any datagram may be.
        if let Ok(bytes) = socket.send_to(&frame, to) {
            state.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

/// The datagrams that answer one. `None` if it is no request, or if the reply is too long.
pub fn answer_datagram(
    datagram: &[u8],
    state: &State,
    now_s: u32,
) -> Option<impl Iterator<Item = Vec<u8>> + use<>> {
    let (id, request) = unframe(datagram)?;
    Some(frames(id, reply(request, state, now_s)?))
}

/// The id and the request of a datagram. A request that spans several datagrams is not supported.
fn unframe(datagram: &[u8]) -> Option<([u8; 2], &[u8])> {
    let (frame, request) = datagram.split_first_chunk::<FRAME_BYTES>()?;
    let whole = frame[4..6] == [0, 1];
    (whole && !request.is_empty()).then_some(([frame[0], frame[1]], request))
}

/// The whole reply to a request; `None` if it is too long.
fn reply(request: &[u8], state: &State, now_s: u32) -> Option<Vec<u8>> {
    let (mut session, mut out, mut rest) = (Session::default(), Vec::new(), request);
    loop {
        let fed = session.feed(rest, state, now_s, &mut out);
        rest = &rest[fed.consumed..];
        if out.len() > REPLY_BYTES_MAX {
            return None;
        }
        if fed.close || !fed.paused {
            return Some(out);
        }
    }
}

fn frames(id: [u8; 2], reply: Vec<u8>) -> impl Iterator<Item = Vec<u8>> {
    const PART_BYTES: usize = DATAGRAM_BYTES_MAX - FRAME_BYTES;
    let count = reply.len().div_ceil(PART_BYTES);
    (0..count).map(move |number| {
        let part = &reply[number * PART_BYTES..reply.len().min((number + 1) * PART_BYTES)];
        let mut frame = Vec::with_capacity(FRAME_BYTES + part.len());
        frame.extend_from_slice(&id);
        frame.extend_from_slice(&(number as u16).to_be_bytes());
        frame.extend_from_slice(&(count as u16).to_be_bytes());
        frame.extend_from_slice(&[0, 0]);
        frame.extend_from_slice(part);
        frame
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reply_is_many_frames() {
        let frames: Vec<Vec<u8>> = frames([7, 9], vec![b'x'; 5000]).collect();
        assert_eq!(frames.len(), 4);
        assert!(frames.iter().all(|frame| frame.len() <= DATAGRAM_BYTES_MAX));
        assert_eq!(frames[3][..8], [7, 9, 0, 3, 0, 4, 0, 0]);
        assert_eq!(frames.iter().map(|frame| frame.len() - 8).sum::<usize>(), 5000);
    }

    #[test]
    fn only_whole_requests_are_taken() {
        assert_eq!(unframe(b"\x01\x02\0\0\0\x01\0\0get a\r\n"), Some(([1, 2], &b"get a\r\n"[..])));
        for datagram in
            [&b""[..], b"\0\0\0\0\0\x01\0", b"\0\0\0\0\0\x02\0\0get a\r\n", b"\0\0\0\0\0\x01\0\0"]
        {
            assert_eq!(unframe(datagram), None);
        }
    }
}
