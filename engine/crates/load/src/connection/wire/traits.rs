//! What goes over a connection. One protocol = one file, chosen when a client is made and dispatched
//! statically from there on.

use cachemark_protocol::reply_errors::Violation;
use cachemark_tape::Verb;

use crate::connection::outgoing::OutputBuffer;
use crate::operation::{Failure, Pending};
use crate::routing::TapeView;

/// What became of the bytes at the front.
pub struct ParsedReply {
    pub bytes: usize,
    pub reply_to: ReplyTo,
}

/// Whose reply it was.
pub enum ReplyTo {
    /// Of the oldest operation that waits, which is answered whole or not yet.
    Oldest { whole: bool },
    /// Of one without a reply: it was heard because it was not done, or could not be.
    Quiet(Option<(Verb, Failure)>),
}

/// A protocol of a client.
pub trait Wire: Send + 'static {
    /// An error does not say what it answers: with quiet operations under way nobody knows.
    const ERRORS_ARE_ANONYMOUS: bool;

    /// Append an operation.
    fn write<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>);

    /// Append the second command of a cas, with the token that its first has brought.
    fn write_cas_store<'tape>(
        out: &mut OutputBuffer<'tape>,
        pending: &Pending,
        token: u64,
        view: TapeView<'tape>,
    );

    /// Append a command that is answered behind everything before it.
    fn write_barrier(out: &mut Vec<u8>, tag: u32);

    /// Take the first reply of `bytes`, if it is whole. A violation says that the stream cannot be
    /// matched to operations any more.
    fn parse_reply(
        bytes: &[u8],
        front: Option<&mut Pending>,
        view: TapeView<'_>,
    ) -> Result<Option<ParsedReply>, Violation>;
}
