//! The duties of a protocol. A client chooses its protocol when it is made; after that all calls are
//! static.

use cachemark_protocol::reply_errors::Violation;
use cachemark_tape::Verb;

use crate::connection::outgoing::OutputBuffer;
use crate::operation::{Failure, OperationCounts, Pending};
use crate::routing::TapeView;

/// The result of parsing one reply.
pub struct ParsedReply {
    pub bytes: usize,
    pub reply_to: ReplyTo,
}

/// The operation that a reply belongs to.
pub enum ReplyTo {
    /// The oldest one that waits. `whole`: it has been answered completely.
    Oldest { whole: bool },
    /// The oldest one that waits, which is a whole operation and needs no more: it succeeded.
    OldestHit(OperationCounts),
    /// An operation without a reply. The server replies because the operation found nothing (`None`) or
    /// failed.
    Quiet(Option<(Verb, Failure)>),
}

/// A protocol.
pub trait Wire: Send + 'static {
    /// Error replies do not name their command. If operations without a reply are in flight, such an
    /// error cannot be assigned.
    const ERRORS_ARE_ANONYMOUS: bool;

    /// Append the commands of an operation.
    fn write<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>);

    /// Append the second command of a cas, with the token from the reply to the first one.
    fn write_cas_store<'tape>(
        out: &mut OutputBuffer<'tape>,
        pending: &Pending,
        token: u64,
        view: TapeView<'tape>,
    );

    /// Append a command that the server answers after everything before it.
    fn write_barrier(out: &mut Vec<u8>, tag: u32);

    /// Parse the first reply in `bytes`; `None` if it is incomplete. After a violation, replies cannot
    /// be assigned to operations any more.
    fn parse_reply(
        bytes: &[u8],
        front: Option<&mut Pending>,
        view: TapeView<'_>,
    ) -> Result<Option<ParsedReply>, Violation>;
}
