//! Several connections of one server: what each is told depends on the order in which their requests
//! are whole, and not on how their bytes come.

use cachemark_server::{Session, State};

use crate::session::{self, comparable, hear};

const CONNECTIONS: usize = 4;

/// What a connection is fed, by its number.
pub type Piece<'a> = (usize, &'a [u8]);

#[derive(Default)]
struct Connection {
    session: Session,
    held: Vec<u8>,
    said: Vec<u8>,
    ended: bool,
    /// Whether it speaks the binary protocol, as its first byte says; it may be told nothing for long.
    binary: Option<bool>,
}

/// The server's side of all connections.
struct Side {
    state: State,
    connections: [Connection; CONNECTIONS],
}

impl Side {
    fn new() -> Side {
        Side { state: session::filled(), connections: Default::default() }
    }

    /// Feed a connection, and tell what it took.
    fn feed(&mut self, number: usize, piece: &[u8]) -> Vec<u8> {
        let connection = &mut self.connections[number];
        if connection.ended {
            return Vec::new();
        }
        connection.held.extend_from_slice(piece);
        let before = connection.held.clone();
        let first = before.first().map(|byte| *byte == 0x80);
        connection.binary = connection.binary.or(first);
        let (said, ended) = hear(&mut connection.session, &mut connection.held, &self.state);
        connection.said.extend(said);
        connection.ended = ended;
        before[..before.len() - connection.held.len()].to_vec()
    }

    fn heard(&self) -> impl Iterator<Item = String> {
        self.connections.iter().map(|connection| {
            comparable(&connection.said, connection.binary == Some(true)).escape_ascii().to_string()
        })
    }
}

/// Feed pieces to connections; then feed others exactly what was taken, in the order in which it
/// was. They must be told the same.
pub fn only_whole_requests_count(pieces: &[Piece<'_>]) {
    let (mut first, mut second) = (Side::new(), Side::new());
    for (number, piece) in pieces {
        let taken = first.feed(*number, piece);
        let again = second.feed(*number, &taken);
        assert_eq!(taken.escape_ascii().to_string(), again.escape_ascii().to_string());
    }
    assert!(first.heard().eq(second.heard()));
}

/// Bytes as pieces: a connection's number, a length, and so many bytes.
pub fn pieces(bytes: &[u8]) -> Vec<Piece<'_>> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    while let [number, length, after @ ..] = rest {
        let (piece, later) = after.split_at(usize::from(*length).min(after.len()));
        pieces.push((usize::from(*number) % CONNECTIONS, piece));
        rest = later;
    }
    pieces
}

/// The bytes of such pieces, each at most 255 long.
pub fn bytes(pieces: &[Piece<'_>]) -> Vec<u8> {
    let piece =
        |(number, piece): &Piece<'_>| [&[*number as u8, piece.len() as u8], *piece].concat();
    pieces.iter().flat_map(piece).collect()
}
