//! What a run came to.

use cachemark_tape::Tape;

use crate::connection::Wire;
use crate::player::Player;
use crate::record::{Sections, Tally};

/// What a phase came to.
pub struct Session {
    pub tally: Tally,
    pub elapsed_ns: u64,
    pub send_elapsed_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    /// Where the window's length was known, and nobody watched it interval by interval.
    pub sections: Option<Sections>,
}

impl Session {
    /// What several players of one tape came to together.
    pub fn of<W: Wire>(players: &[Player<'_, W>], tape: &Tape) -> Session {
        let mut tally = Tally::new(tape, 0);
        let (mut elapsed_ns, mut send_elapsed_ns) = (0, 0);
        for player in players {
            tally.add(player.tally());
            let (elapsed, sent) = player.elapsed_ns();
            elapsed_ns = elapsed_ns.max(elapsed);
            send_elapsed_ns = send_elapsed_ns.max(sent);
        }
        let sections = Sections::of(players.iter().map(Player::tally));
        Session { tally, elapsed_ns, send_elapsed_ns, cpu_user_ns: 0, cpu_system_ns: 0, sections }
    }
}
