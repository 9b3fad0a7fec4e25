//! A connection keeps little of a reply without end, and less the more connections there are.

use cachemark_tape::{Schedule, Tape, Workload, generate, parse_mix};

use super::{Connection, READ_BYTES, REPLIES_BYTES_MAX, REPLY_BYTES_MAX, Text};
use crate::operation::{Failure, Pending};
use crate::record::{Metrics, Recorder};
use crate::routing::TapeView;

fn tape() -> Tape {
    let mix = parse_mix("get").expect("a mix");
    let workload = Workload { keys: 1, mix, ..Workload::default() };
    let bytes = generate(&workload, &Schedule::closed(1), 1).expect("a tape");
    Tape::from_bytes(bytes).expect("our own tape")
}

/// The bytes that one of `connections` reads of a value of 4 GB, and what it keeps after its failure.
fn read_without_end(connections: usize) -> (usize, usize) {
    let tape = tape();
    let view = TapeView::new(&tape, None);
    let mut recorder = Recorder::new(Metrics::new(&tape, 0));
    let mut connection = Connection::<Text>::new(1, connections);
    connection.send(Pending::closed_loop(tape.op(0)), view);
    connection.mark_sent(1, &mut recorder);
    let head = [&b"VALUE "[..], tape.key(0), b" 0 4000000000\r\n"].concat();
    let mut shared = vec![b'x'; READ_BYTES];
    let mut total = 0;
    loop {
        let room = connection.read_buffer(&mut shared);
        let bytes = room.len();
        room.fill(b'x');
        if total == 0 {
            room[..head.len()].copy_from_slice(&head);
        }
        total += bytes;
        assert!(total < 2 * REPLY_BYTES_MAX + REPLIES_BYTES_MAX, "it has no limit");
        if connection.read(&shared, bytes, 2, view, &mut recorder).1.is_err() {
            break;
        }
    }
    assert_eq!(connection.fail(Failure::Protocol, 2, 3, view, &mut recorder), 1);
    (total, connection.unread.capacity())
}

#[test]
fn an_endless_reply_is_read_up_to_a_limit() {
    for connections in [1, 16, 1000, 100_000] {
        let (read, kept) = read_without_end(connections);
        // A value of the tape may be as long as its pool. The buffer doubles.
        let pool = tape().pool().len() + READ_BYTES;
        let limit = (REPLIES_BYTES_MAX / connections).clamp(pool, REPLY_BYTES_MAX);
        assert!(read <= 2 * limit + READ_BYTES, "{connections} connections: {read} bytes");
        assert_eq!(kept, READ_BYTES);
    }
}
