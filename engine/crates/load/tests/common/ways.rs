//! Every protocol over each way of I/O that there is on this machine.

use cachemark_load::{Io, WireName};

pub fn ways_of_io() -> impl Iterator<Item = (Io, WireName)> {
    let ways = [Io::Epoll, Io::Uring].into_iter().filter(|io| io.refusal().is_none());
    ways.flat_map(|io| WireName::ALL.map(|wire| (io, wire)))
}
