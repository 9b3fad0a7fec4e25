//! What goes over a connection. One protocol = one file, chosen when a client is made and dispatched
//! statically from there on.

use cachemark_protocol::reply_errors::Violation;
use cachemark_tape::Verb;

use crate::connection::outgoing::Outgoing;
use crate::operation::{Failure, Pending};
use crate::routing::Book;

/// What became of the bytes at the front.
pub struct Taken {
    pub bytes: usize,
    pub by: By,
}

/// Whose reply it was.
pub enum By {
    /// Of the oldest operation that waits, which is answered whole or not yet.
    Front { whole: bool },
    /// Of one without a reply: it was heard because it was not done, or could not be.
    Quiet(Option<(Verb, Failure)>),
}

/// A protocol of a client.
pub trait Wire: Send + 'static {
    /// An error does not say what it answers: with quiet operations under way nobody knows.
    const NAMELESS_ERRORS: bool;

    /// Append an operation.
    fn write<'tape>(out: &mut Outgoing<'tape>, pending: &Pending, book: Book<'tape>);

    /// Append the second command of a cas, with the token that its first has brought.
    fn write_swap<'tape>(
        out: &mut Outgoing<'tape>,
        pending: &Pending,
        token: u64,
        book: Book<'tape>,
    );

    /// Append a command that is answered behind everything before it.
    fn write_barrier(out: &mut Vec<u8>, tag: u32);

    /// Take the first reply of `bytes`, if it is whole. A violation says that the stream cannot be
    /// matched to operations any more.
    fn take(
        bytes: &[u8],
        front: Option<&mut Pending>,
        book: Book<'_>,
    ) -> Result<Option<Taken>, Violation>;
}
