//! The fidelity server: its scripts are refused, or played without going back in time; and it splits requests
//! like a session.

use cachemark_scripted::{PlannedReply, ReplyPlanner, Script, next_request};
use cachemark_server::Session;

use crate::session;

/// Parse a script and play it.
pub fn refused_or_played(text: &str) {
    match Script::parse(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(script) => play(&mut ReplyPlanner::new(&script)),
    }
}

fn play(planner: &mut ReplyPlanner) {
    let mut first = Vec::new();
    for round in 0..2 {
        for number in 0..40_u64 {
            let at_ns = number * 30_000_000;
            let reply = planner.next(at_ns, number % 7);
            match reply {
                PlannedReply::At { first_ns, last_ns, .. } => {
                    assert!(at_ns <= first_ns && first_ns <= last_ns, "{reply:?} at {at_ns}");
                }
                PlannedReply::Close { at_ns: closed_ns } => assert!(at_ns <= closed_ns),
                PlannedReply::Never => {}
            }
            if round == 0 {
                first.push(reply);
            } else {
                assert_eq!(reply, first[number as usize], "the same again");
            }
        }
        planner.restart();
    }
}

/// A request ends at the same byte for the fidelity server and for a session.
pub fn splits_requests_like_a_session(bytes: &[u8]) {
    let (state, mut server, mut rest) = (session::empty(), Session::default(), bytes);
    let mut protocol = None;
    while let Some((length, _)) = next_request(rest, b"", &mut protocol) {
        assert!((1..=rest.len()).contains(&length));
        let mut unread = rest[..length].to_vec();
        let (_, closed) = session::feed_all(&mut server, &mut unread, &state);
        if closed {
            return;
        }
        assert!(unread.is_empty(), "left of {}: {}", rest[..length].escape_ascii(), unread.len());
        rest = &rest[length..];
    }
}
