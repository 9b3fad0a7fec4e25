//! Every protocol with each I/O backend that this machine supports.

use cachemark_load::{IoBackend, WireName};

pub fn backends_and_wires() -> impl Iterator<Item = (IoBackend, WireName)> {
    let ways = [IoBackend::Epoll, IoBackend::Uring]
        .into_iter()
        .filter(|io| io.unsupported_reason().is_none());
    ways.flat_map(|io| WireName::ALL.map(|wire| (io, wire)))
}
