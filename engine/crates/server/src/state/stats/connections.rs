//! `stats conns`: the sockets that listen, and the clients.

use crate::state::server_state::State;
use crate::state::stats::rows::{Row, row};

/// `asking` is the socket of the client that asks.
pub fn table(state: &State, asking: Option<i32>) -> Vec<Row> {
    let now_s = state.now_s();
    let uptime_s = state.uptime_s();
    let listening = state.listening.get().map_or(&[][..], Vec::as_slice);
    let listening = listening.iter().flat_map(|at| {
        // memcached reads datagrams as it reads connections.
        let does = if at.address.starts_with("udp:") { "conn_read" } else { "conn_listening" };
        [
            row(format!("{}:addr", at.socket), named(&at.address)),
            row(format!("{}:state", at.socket), does),
            row(format!("{}:secs_since_last_cmd", at.socket), uptime_s),
        ]
    });
    let clients = state.peers().into_iter().flat_map(|peer| {
        let socket = peer.socket;
        let does = match peer.awaits_data() {
            _ if Some(socket) == asking => "conn_parse_cmd",
            _ if peer.watches() => "conn_watch",
            true => "conn_nread",
            false => "conn_read",
        };
        [
            row(format!("{socket}:addr"), &peer.address),
            row(format!("{socket}:listen_addr"), &peer.listener),
            row(format!("{socket}:state"), does),
            row(format!("{socket}:secs_since_last_cmd"), peer.idle_s(now_s)),
        ]
    });
    listening.chain(clients).collect()
}

/// An address with its kind in front.
fn named(address: &str) -> String {
    let has_kind = ["udp:", "unix:"].iter().any(|kind| address.starts_with(kind));
    if has_kind { address.to_owned() } else { format!("tcp:{address}") }
}
