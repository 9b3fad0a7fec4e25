//! The changes that faults make to requests and replies. Nothing here reads or writes a socket.

use crate::fault::Fault;
use crate::frames::replies::ReplyFrame;

/// A line of no protocol. In the binary protocol too, its first byte is wrong.
pub const GARBAGE_LINE: &[u8] = b"GARBAGE 8c1f 7e02 this is no reply\r\n";
/// memcached's reply to a connection above its limit, in any protocol.
pub const TOO_MANY_CONNECTIONS: &[u8] = b"ERROR Too many open connections\r\n";
const OUT_OF_MEMORY_LINE: &[u8] = b"SERVER_ERROR out of memory storing object\r\n";
const OUT_OF_MEMORY_STATUS: u8 = 0x82;
const OUT_OF_MEMORY_TEXT: &[u8] = b"Out of memory";

/// A longer reply is not sent twice.
const REPEATED_BYTES_MAX: usize = 4 << 20;

/// Chooses a share of the items that come: with a share of 0.1, each tenth.
#[derive(Debug, Default)]
pub struct Chooser {
    come: u64,
}

impl Chooser {
    pub fn choose(&mut self, share: f64) -> bool {
        let before = (self.come as f64 * share).floor();
        self.come += 1;
        (self.come as f64 * share).floor() > before
    }
}

/// The error reply to a request, which gets it instead of being executed.
pub fn server_error(request: &[u8]) -> Vec<u8> {
    if request[0] != 0x80 {
        return OUT_OF_MEMORY_LINE.to_vec();
    }
    let mut reply = vec![0; 24];
    reply[0] = 0x81;
    reply[1] = request[1];
    reply[7] = OUT_OF_MEMORY_STATUS;
    reply[11] = OUT_OF_MEMORY_TEXT.len() as u8;
    reply[12..16].copy_from_slice(&request[12..16]);
    reply.extend_from_slice(OUT_OF_MEMORY_TEXT);
    reply
}

/// A request that has no effect, in place of `request`: its reply says when all earlier replies have come.
pub fn version_request(request: &[u8]) -> Vec<u8> {
    if request[0] != 0x80 {
        return b"version\r\n".to_vec();
    }
    let mut version = vec![0; 24];
    (version[0], version[1]) = (0x80, 0x0b);
    version
}

/// How a stream goes on behind a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    GoOn,
    Reset,
    Close,
}

/// The change that a fault made to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edit {
    /// How many bytes behind the beginning of the frame the change is; `None` if nothing was changed.
    pub changed_at: Option<usize>,
    pub then: Then,
}

const UNCHANGED: Edit = Edit { changed_at: None, then: Then::GoOn };

/// The memory of a connection about its replies.
#[derive(Default)]
pub struct ReplyMemory {
    /// The frames of the current reply.
    reply: Vec<u8>,
    /// The reply is too long to be remembered.
    is_too_long: bool,
    is_in_reply: bool,
    /// The last frame with a value, for a reply with another key.
    value: Vec<u8>,
}

impl ReplyMemory {
    /// A frame passes that no fault looks at.
    pub fn pass(&mut self, what: ReplyFrame) {
        self.is_in_reply = what.has_more;
        self.is_too_long = false;
        self.reply.clear();
        self.value.clear();
    }
}

/// Apply a fault to a frame of a reply.
pub fn edit_reply(
    fault: &Fault,
    (what, frame): (ReplyFrame, &[u8]),
    chooser: &mut Chooser,
    memory: &mut ReplyMemory,
    out: &mut Vec<u8>,
) -> Edit {
    let is_first = !std::mem::replace(&mut memory.is_in_reply, what.has_more);
    let edited = match (fault, what.value()) {
        (Fault::GarbageLine { share }, _) if is_first && chooser.choose(*share) => {
            out.extend_from_slice(GARBAGE_LINE);
            Some(changed(0))
        }
        (Fault::UnaskedReply { share }, _) => {
            return repeat_reply(*share, (what, frame), chooser, memory, out);
        }
        (_, None) => None,
        (Fault::OtherKey { share }, Some(_)) => {
            return replace_value(*share, frame, chooser, &mut memory.value, out);
        }
        (fault, Some(value))
            if cuts(fault) && chooser.choose(fault.share().unwrap_or_default()) =>
        {
            return cut_value(fault, value, frame, out);
        }
        _ => None,
    };
    out.extend_from_slice(frame);
    edited.unwrap_or(UNCHANGED)
}

fn changed(at: usize) -> Edit {
    Edit { changed_at: Some(at), then: Then::GoOn }
}

fn cuts(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::ResetInValue { .. } | Fault::CloseInValue { .. } | Fault::TruncateValue { .. }
    )
}

/// Leave out a part of a value.
fn cut_value(
    fault: &Fault,
    value: std::ops::Range<usize>,
    frame: &[u8],
    out: &mut Vec<u8>,
) -> Edit {
    let within = |bytes: u64| (bytes as usize).min(value.len() - 1);
    let (cut, then) = match *fault {
        Fault::ResetInValue { after_bytes, .. } => (value.start + within(after_bytes), Then::Reset),
        Fault::CloseInValue { after_bytes, .. } => (value.start + within(after_bytes), Then::Close),
        Fault::TruncateValue { missing_bytes, .. } => {
            let missing = (missing_bytes as usize).min(value.len());
            let cut = value.end - missing;
            out.extend_from_slice(&frame[..cut]);
            out.extend_from_slice(&frame[value.end..]);
            return changed(cut);
        }
        _ => unreachable!("no other fault cuts a value"),
    };
    out.extend_from_slice(&frame[..cut]);
    Edit { changed_at: Some(cut), then }
}

/// Send the reply that ends with this frame a second time.
fn repeat_reply(
    share: f64,
    (what, frame): (ReplyFrame, &[u8]),
    chooser: &mut Chooser,
    memory: &mut ReplyMemory,
    out: &mut Vec<u8>,
) -> Edit {
    out.extend_from_slice(frame);
    memory.is_too_long |= memory.reply.len() + frame.len() > REPEATED_BYTES_MAX;
    if memory.is_too_long {
        memory.reply = Vec::new();
    } else {
        memory.reply.extend_from_slice(frame);
    }
    if what.has_more {
        return UNCHANGED;
    }
    let reply = std::mem::take(&mut memory.reply);
    if std::mem::take(&mut memory.is_too_long) || !chooser.choose(share) {
        return UNCHANGED;
    }
    out.extend_from_slice(&reply);
    changed(frame.len())
}

/// Send the frame with another value instead of this one, and remember this one. Only a value of the same connection
/// takes its place: on another one a request may have had the same opaque, so that no client could tell.
fn replace_value(
    share: f64,
    frame: &[u8],
    chooser: &mut Chooser,
    other: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Edit {
    if !is_other_read(other, frame) || !chooser.choose(share) {
        out.extend_from_slice(frame);
        frame.clone_into(other);
        return UNCHANGED;
    }
    out.append(other);
    frame.clone_into(other);
    changed(0)
}

/// Whether a frame has the form of the current one, and the value of another key where it names the key.
fn is_other_read(other: &[u8], frame: &[u8]) -> bool {
    // The first three bytes tell a text value, a meta value and a binary packet apart.
    let front = if frame[0] == 0x81 { 2 } else { 3 };
    let is_same_form = other.get(..front) == frame.get(..front);
    let key = key_in(frame);
    is_same_form && (key.is_none() || key != key_in(other))
}

/// The key that a frame with a value names: a text value does, a meta value if it was asked to (`k`).
fn key_in(frame: &[u8]) -> Option<&[u8]> {
    let line = frame.split(|byte| *byte == b'\r').next()?;
    let mut words = line.split(|byte| *byte == b' ');
    match words.next()? {
        b"VALUE" => words.next(),
        b"VA" => words.find_map(|word| word.strip_prefix(b"k")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::replies::Replies;
    use crate::frames::{Grammar, Scan};

    fn edited(fault: &Fault, frames: &[&[u8]]) -> (String, Vec<Edit>) {
        let mut out = Vec::new();
        let (mut chooser, mut memory) = Default::default();
        let edits = frames.iter().map(|frame| {
            let Scan::Frame { what, bytes } = Replies::default().scan(frame) else {
                panic!("{}", frame.escape_ascii())
            };
            assert_eq!(bytes, frame.len());
            edit_reply(fault, (what, frame), &mut chooser, &mut memory, &mut out)
        });
        let edits = edits.collect();
        (String::from_utf8_lossy(&out).into_owned(), edits)
    }

    const A: &[u8] = b"VALUE a 0 3\r\nabc\r\n";
    const B: &[u8] = b"VALUE b 0 3\r\nxyz\r\n";
    const END: &[u8] = b"END\r\n";

    #[test]
    fn a_share_is_exact() {
        let mut chooser = Chooser::default();
        let chosen = (0..1000).filter(|_| chooser.choose(0.1)).count();
        assert_eq!(chosen, 100);
        let mut chooser = Chooser::default();
        assert!((0..10).all(|_| chooser.choose(1.0)));
    }

    #[test]
    fn a_value_is_cut() {
        let reset = Fault::ResetInValue { share: 1.0, after_bytes: 2 };
        let cut = Edit { changed_at: Some(15), then: Then::Reset };
        assert_eq!(edited(&reset, &[A]), ("VALUE a 0 3\r\nab".to_owned(), vec![cut]));
        let close = Fault::CloseInValue { share: 1.0, after_bytes: 99 };
        let cut = Edit { changed_at: Some(15), then: Then::Close };
        assert_eq!(edited(&close, &[A]).1, [cut], "never the whole value");
        let truncate = Fault::TruncateValue { share: 1.0, missing_bytes: 1 };
        assert_eq!(edited(&truncate, &[A, END]).0, "VALUE a 0 3\r\nab\r\nEND\r\n");
        assert_eq!(edited(&truncate, &[b"VALUE a 0 0\r\n\r\n", END]).1, [UNCHANGED, UNCHANGED]);
    }

    #[test]
    fn a_reply_is_repeated_as_a_whole() {
        let twice = Fault::UnaskedReply { share: 0.5 };
        let (out, edits) = edited(&twice, &[A, END, A, B, END, END]);
        let [a, b, end] = [A, B, END].map(String::from_utf8_lossy);
        assert_eq!(out, format!("{a}{end}{a}{b}{end}{a}{b}{end}{end}"));
        assert_eq!(edits.iter().filter(|edit| edit.changed_at.is_some()).count(), 1);
    }

    #[test]
    fn a_reply_without_an_end_is_not_remembered() {
        let twice = Fault::UnaskedReply { share: 1.0 };
        let long = [b"VALUE a 0 1048576\r\n", &vec![b'x'; 1 << 20][..], b"\r\n"].concat();
        let frames = [&[&long[..]; 5][..], &[END, A, END]].concat();
        let (out, edits) = edited(&twice, &frames);
        assert!(edits[..6].iter().all(|edit| *edit == UNCHANGED), "{edits:?}");
        let [a, end] = [A, END].map(String::from_utf8_lossy);
        assert!(out.ends_with(&format!("x\r\n{end}{a}{end}{a}{end}")));
    }

    #[test]
    fn garbage_comes_before_a_reply_and_not_within() {
        let garbage = Fault::GarbageLine { share: 1.0 };
        let line = String::from_utf8_lossy(GARBAGE_LINE);
        let [a, b, end] = [A, B, END].map(String::from_utf8_lossy);
        assert_eq!(edited(&garbage, &[A, B, END, END]).0, format!("{line}{a}{b}{end}{line}{end}"));
    }

    #[test]
    fn a_read_gets_the_value_of_an_earlier_one() {
        let other = Fault::OtherKey { share: 1.0 };
        let [a, b, end] = [A, B, END].map(String::from_utf8_lossy);
        let (out, edits) = edited(&other, &[A, END, B, END, B, END]);
        assert_eq!(out, format!("{a}{end}{a}{end}{b}{end}"));
        assert_eq!(edits[2], changed(0));
        assert_eq!(edited(&other, &[A, b"VA 3\r\nxyz\r\n"]).1, [UNCHANGED, UNCHANGED]);
    }

    #[test]
    fn an_older_value_of_the_key_is_no_other_key() {
        let other = Fault::OtherKey { share: 1.0 };
        let is_changed = |frames: &[&[u8]]| edited(&other, frames).1[1].changed_at.is_some();
        assert!(!is_changed(&[A, b"VALUE a 0 3\r\nnew\r\n"]));
        assert!(!is_changed(&[b"VA 3 f0 ka\r\nold\r\n", b"VA 3 f0 ka\r\nnew\r\n"]));
        assert!(is_changed(&[b"VA 3 f0 ka\r\nold\r\n", b"VA 3 f0 kb\r\nnew\r\n"]));
        assert!(is_changed(&[b"VA 3 f0\r\nold\r\n", b"VA 3 f0\r\nnew\r\n"]), "it names none");
    }

    #[test]
    fn an_error_has_the_form_of_its_request() {
        assert_eq!(server_error(b"get a\r\n"), b"SERVER_ERROR out of memory storing object\r\n");
        let mut request = vec![0x80, 0x01];
        request.resize(24, 7);
        let reply = server_error(&request);
        assert_eq!(
            (&reply[..2], &reply[6..8], &reply[12..16]),
            (&[0x81, 1][..], &[0, 0x82][..], &[7; 4][..])
        );
        assert_eq!(reply.len(), 24 + usize::from(reply[11]));
    }
}
