//! A client's connection and the one to its server, with a distance between them.

use std::net::TcpStream;

use cachemark_scripted::monotonic_ns;

use crate::connection::end::End;
use crate::distance::account::Account;
use crate::distance::held::Held;
use crate::distance::way::Way;

/// How often a connection reads before the others get their turn.
const READS_PER_TURN: usize = 16;

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    /// There is more to do at once.
    Busy,
    Closed,
}

pub struct Link {
    pub client: End,
    pub upstream: End,
    there: Way,
    back: Way,
    one_way_ns: u64,
    /// A client's first bytes are due no earlier: opening a connection takes a round trip, too.
    first_due_ns: u64,
}

/// One direction while bytes are moved.
struct Direction<'a> {
    from: &'a mut End,
    to: &'a mut End,
    way: &'a mut Way,
    held: &'a mut Held,
}

impl Link {
    pub fn new(client: TcpStream, upstream: TcpStream, one_way_ns: u64) -> Link {
        Link {
            client: End::new(client),
            upstream: End::new(upstream),
            there: Way::default(),
            back: Way::default(),
            one_way_ns,
            first_due_ns: monotonic_ns() + 3 * one_way_ns,
        }
    }

    /// Move what can be moved.
    pub fn pump(&mut self, scratch: &mut [u8], account: &mut Account) -> Status {
        let Link { client, upstream, there, back, one_way_ns, first_due_ns } = self;
        let requests = Direction {
            from: &mut *client,
            to: &mut *upstream,
            way: there,
            held: &mut account.there,
        };
        let more_there = requests.carry((*one_way_ns, *first_due_ns), scratch);
        let replies = Direction { from: upstream, to: client, way: back, held: &mut account.back };
        let more_back = replies.carry((*one_way_ns, 0), scratch);
        match (more_there, more_back) {
            (Ok(there), Ok(back)) if there || back => Status::Busy,
            (Ok(_), Ok(_)) if !(self.there.is_done && self.back.is_done) => Status::Open,
            (Ok(_), Ok(_)) => Status::Closed,
            _ => {
                self.client.reset_at_close();
                self.upstream.reset_at_close();
                Status::Closed
            }
        }
    }

    /// Times at which there is something to do, as far as they are new.
    pub fn new_timers(&mut self) -> impl Iterator<Item = u64> {
        [self.there.new_timer(), self.back.new_timer()].into_iter().flatten()
    }
}

/// The connection is to be reset.
struct Reset;

impl Direction<'_> {
    /// Read, let wait, and write. Returns whether more can be read.
    fn carry(mut self, delay: (u64, u64), scratch: &mut [u8]) -> Result<bool, Reset> {
        for _ in 0..READS_PER_TURN {
            self.write()?;
            if !self.read(delay, scratch) {
                self.write()?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn write(&mut self) -> Result<(), Reset> {
        match self.way.write_to(self.to, self.held) {
            Ok(true) => Err(Reset),
            Ok(false) => Ok(()),
            Err(_) => {
                self.way.abandon();
                Ok(())
            }
        }
    }

    /// Take the bytes that have come: they are due one way later. Returns whether there were any.
    fn read(&mut self, (one_way_ns, earliest_ns): (u64, u64), scratch: &mut [u8]) -> bool {
        if !self.way.has_room() {
            self.held.add_full();
            return false;
        }
        let read = self.from.read(scratch);
        // Bytes were sent before they were read, so no way is shorter than the one that was asked for.
        let read_ns = monotonic_ns();
        let due_ns = earliest_ns.max(read_ns + one_way_ns);
        match read {
            Ok(Some(bytes)) => {
                self.way.add(bytes, read_ns, due_ns);
                return true;
            }
            Ok(None) if self.from.has_ended => self.way.end(due_ns, false),
            Ok(None) => {}
            Err(_) => {
                self.from.has_ended = true;
                self.way.end(due_ns, true);
            }
        }
        false
    }
}
