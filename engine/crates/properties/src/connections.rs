//! Several connections of one server: the replies depend on the order in which requests become complete, and
//! not on how their bytes are split.

use cachemark_server::{Session, State};

use crate::session::{self, comparable, feed_all};

const CONNECTIONS: usize = 4;

/// Bytes for the connection with this number.
pub type Piece<'a> = (usize, &'a [u8]);

#[derive(Default)]
struct Connection {
    session: Session,
    unread: Vec<u8>,
    replies: Vec<u8>,
    ended: bool,
    /// Whether the first byte selected the binary protocol; `None` before it.
    binary: Option<bool>,
}

/// A server and the state of its connections.
struct ServerSide {
    state: State,
    connections: [Connection; CONNECTIONS],
}

impl ServerSide {
    fn new() -> ServerSide {
        ServerSide { state: session::with_items(), connections: Default::default() }
    }

    /// Feed a connection and return the bytes that it consumed.
    fn feed(&mut self, number: usize, piece: &[u8]) -> Vec<u8> {
        let connection = &mut self.connections[number];
        if connection.ended {
            return Vec::new();
        }
        connection.unread.extend_from_slice(piece);
        let before = connection.unread.clone();
        let first = before.first().map(|byte| *byte == 0x80);
        connection.binary = connection.binary.or(first);
        let (replies, ended) =
            feed_all(&mut connection.session, &mut connection.unread, &self.state);
        connection.replies.extend(replies);
        connection.ended = ended;
        before[..before.len() - connection.unread.len()].to_vec()
    }

    /// The replies of each connection.
    fn replies(&self) -> impl Iterator<Item = String> {
        self.connections.iter().map(|connection| {
            comparable(&connection.replies, connection.binary == Some(true))
                .escape_ascii()
                .to_string()
        })
    }
}

/// Feed pieces to the connections of one server, and exactly the consumed bytes to another server's connections, in the
/// same order. The replies must be equal.
pub fn only_complete_requests_count(pieces: &[Piece<'_>]) {
    let (mut first, mut second) = (ServerSide::new(), ServerSide::new());
    for (number, piece) in pieces {
        let taken = first.feed(*number, piece);
        let again = second.feed(*number, &taken);
        assert_eq!(taken.escape_ascii().to_string(), again.escape_ascii().to_string());
    }
    assert!(first.replies().eq(second.replies()));
}

/// Decode pieces: a connection's number, a length, and the bytes.
pub fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while let [number, length, after @ ..] = rest {
        let (piece, later) = after.split_at(usize::from(*length).min(after.len()));
        pieces.push((usize::from(*number) % CONNECTIONS, piece));
        rest = later;
    }
    pieces
}

/// Encode pieces, each of at most 255 bytes.
pub fn bytes(pieces: &[Piece<'_>]) -> Vec<u8> {
    let piece =
        |(number, piece): &Piece<'_>| [&[*number as u8, piece.len() as u8], *piece].concat();
    pieces.iter().flat_map(piece).collect()
}
