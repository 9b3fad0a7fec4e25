//! Follows the frames of a stream, and collects whole ones when a fault wants to change them.

use std::ops::ControlFlow;

use crate::frames::{Grammar, Scan};

/// A longer frame passes as it is.
const COLLECTED_BYTES_MAX: usize = 2 << 20;

/// One direction of a connection.
#[derive(Default)]
pub struct Framer<G> {
    grammar: G,
    /// The first bytes of a frame: until its length is known, or until it is complete.
    partial: Vec<u8>,
    /// How many bytes of `partial` were passed on already.
    passed_bytes: usize,
    /// How many bytes of the current frame are still to come and pass as they are.
    left_bytes: usize,
    /// No frame was recognized: from here on everything passes.
    is_lost: bool,
}

impl<G: Grammar> Framer<G> {
    /// Follow bytes that are passed on as they are. `seen` gets each frame whose length is known now.
    /// Earlier bytes must have been released.
    pub fn follow(&mut self, mut bytes: &[u8], mut seen: impl FnMut(G::What)) {
        loop {
            bytes = &bytes[self.pass(bytes.len())..];
            if bytes.is_empty() {
                return;
            }
            let passed = self.partial.len();
            if passed > 0 {
                self.partial.extend_from_slice(bytes);
            }
            match self.grammar.scan(if passed > 0 { &self.partial } else { bytes }) {
                Scan::Incomplete => {
                    if passed == 0 {
                        self.partial.extend_from_slice(bytes);
                    }
                    self.passed_bytes = self.partial.len();
                    return;
                }
                Scan::Frame { bytes: whole, what } => {
                    seen(what);
                    self.left_bytes = whole - passed;
                }
                Scan::Unknown => self.is_lost = true,
            }
            self.forget_partial();
        }
    }

    /// Take bytes, and pass `edit` each whole frame, which it appends to `out` or not. A frame that has passed in
    /// part, or is too long, goes to `out` as it is, and `edit` does not get its bytes. A break ends the stream: what
    /// came after it is forgotten.
    pub fn take(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        edit: impl FnMut(G::What, Option<&[u8]>, &mut Vec<u8>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let flow = self.take_frames(bytes, out, edit);
        if flow.is_break() {
            self.forget_partial();
        }
        flow
    }

    fn take_frames(
        &mut self,
        bytes: &[u8],
        out: &mut Vec<u8>,
        mut edit: impl FnMut(G::What, Option<&[u8]>, &mut Vec<u8>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let (now, rest) = bytes.split_at(self.pass(bytes.len()));
        out.extend_from_slice(now);
        self.partial.extend_from_slice(rest);
        let mut done = 0;
        while done < self.partial.len() {
            let front = &self.partial[done..];
            match self.grammar.scan(front) {
                Scan::Incomplete => {
                    if self.passed_bytes > 0 {
                        out.extend_from_slice(&front[self.passed_bytes..]);
                        self.passed_bytes = front.len();
                    }
                    break;
                }
                Scan::Unknown => {
                    self.is_lost = true;
                    out.extend_from_slice(&front[self.passed_bytes..]);
                    self.forget_partial();
                    return ControlFlow::Continue(());
                }
                Scan::Frame { bytes: whole, what } => {
                    let arrived = whole.min(front.len());
                    if self.passed_bytes > 0 || whole > COLLECTED_BYTES_MAX {
                        edit(what, None, out)?;
                        out.extend_from_slice(&front[self.passed_bytes..arrived]);
                        (self.passed_bytes, self.left_bytes) = (0, whole - arrived);
                    } else if arrived < whole {
                        break;
                    } else {
                        edit(what, Some(&front[..whole]), out)?;
                    }
                    done += arrived;
                }
            }
        }
        self.partial.drain(..done);
        ControlFlow::Continue(())
    }

    /// Pass on what was collected of an incomplete frame.
    pub fn release(&mut self, out: &mut Vec<u8>, seen: impl FnOnce(G::What)) {
        if self.passed_bytes == self.partial.len() {
            return;
        }
        out.extend_from_slice(&self.partial[self.passed_bytes..]);
        self.passed_bytes = self.partial.len();
        if let Scan::Frame { bytes: whole, what } = self.grammar.scan(&self.partial) {
            seen(what);
            self.left_bytes = whole - self.partial.len();
            self.forget_partial();
        }
    }

    /// How many of the next bytes pass as they are.
    fn pass(&mut self, available: usize) -> usize {
        if self.is_lost {
            return available;
        }
        let bytes = self.left_bytes.min(available);
        self.left_bytes -= bytes;
        bytes
    }

    fn forget_partial(&mut self) {
        self.partial.clear();
        self.passed_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frames::requests::{RequestKind, Requests};

    const STREAM: &[u8] = b"get a\r\nset b 0 0 5\r\nab\r\nc\r\nversion\r\nmg c v\r\n";

    /// Frames in capitals: which of them were edited.
    fn shout(_: RequestKind, frame: Option<&[u8]>, out: &mut Vec<u8>) -> ControlFlow<()> {
        out.extend(frame.unwrap_or_default().to_ascii_uppercase());
        ControlFlow::Continue(())
    }

    #[test]
    fn an_edit_begins_with_the_next_frame() {
        let (mut framer, mut out) = (Framer::<Requests>::default(), Vec::new());
        for (part, expected) in
            [(&b"b 0 0 5\r\nab"[..], "b 0 0 5\r\nab"), (b"\r\nc\r\nge", "\r\nc\r\n")]
        {
            framer.follow(if part[0] == b'b' { b"get a\r\nset " } else { b"" }, |_| ());
            assert!(framer.take(part, &mut out, shout).is_continue());
            assert_eq!(String::from_utf8_lossy(&out), expected);
            out.clear();
        }
        assert!(framer.take(b"t d\r\n", &mut out, shout).is_continue());
        assert_eq!(out, b"GET D\r\n");
    }

    #[test]
    fn what_was_collected_is_released() {
        let (mut framer, mut out) = (Framer::<Requests>::default(), Vec::new());
        assert!(framer.take(b"set a 0 0 4\r\nab", &mut out, shout).is_continue());
        assert!(out.is_empty());
        let mut seen = Vec::new();
        framer.release(&mut out, |what| seen.push(what));
        assert_eq!(out, b"set a 0 0 4\r\nab");
        framer.follow(b"cd\r\nversion\r\n", |what| seen.push(what));
        assert_eq!(seen, [RequestKind::Item, RequestKind::Version]);
    }

    #[test]
    fn nothing_is_left_behind_a_break() {
        let (mut framer, mut out) = (Framer::<Requests>::default(), Vec::new());
        let flow =
            framer.take(b"get a\r\nget b\r\nget", &mut out, |_, _, _| ControlFlow::Break(()));
        assert!(flow.is_break());
        framer.release(&mut out, |_| ());
        assert!(out.is_empty(), "{}", out.escape_ascii());
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_arrive(cuts in proptest::collection::vec(1_usize..9, 0..12)) {
            let (mut followed, mut taken) = (Framer::<Requests>::default(), Framer::<Requests>::default());
            let (mut seen, mut edited, mut out) = (Vec::new(), Vec::new(), Vec::new());
            let mut rest = STREAM;
            for cut in cuts.into_iter().chain([STREAM.len()]) {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                rest = later;
                followed.follow(now, |what| seen.push(what));
                let flow = taken.take(now, &mut out, |what, frame, out| {
                    edited.push(what);
                    out.extend_from_slice(frame.expect("a short frame"));
                    ControlFlow::Continue(())
                });
                prop_assert!(flow.is_continue());
            }
            use RequestKind::{Item, Version};
            prop_assert_eq!(&seen, &[Item, Item, Version, Item]);
            prop_assert_eq!((&edited, &out[..]), (&seen, STREAM));
        }

        #[test]
        fn any_bytes_pass_when_modes_alternate(
            pieces in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..40), any::<bool>()), 0..20),
        ) {
            let (mut framer, mut out, mut sent) = (Framer::<Requests>::default(), Vec::new(), Vec::new());
            for (piece, takes) in pieces {
                sent.extend_from_slice(&piece);
                if takes {
                    let flow = framer.take(&piece, &mut out, |_, frame, out| {
                        out.extend_from_slice(frame.unwrap_or_default());
                        ControlFlow::Continue(())
                    });
                    prop_assert!(flow.is_continue());
                } else {
                    framer.release(&mut out, |_| ());
                    framer.follow(&piece, |_| ());
                    out.extend_from_slice(&piece);
                }
            }
            framer.release(&mut out, |_| ());
            prop_assert_eq!(out, sent);
        }
    }
}
