//! The lines of the log that `watch` shows, in memcached's form (its doc/protocol.txt, "Watchers").

use cachemark_protocol::percent::append_percent_encoded;
use cachemark_storage::Item;

use crate::state::peer::Peer;

fn encoded(key: &[u8]) -> String {
    let mut out = Vec::with_capacity(key.len());
    append_percent_encoded(&mut out, key);
    // All of it is ASCII.
    String::from_utf8(out).unwrap_or_default()
}

/// A key was looked up. `length` is that of its value, if there is one.
pub fn item_get(key: &[u8], length: Option<usize>, socket: i32) -> String {
    let (status, class) = if length.is_some() { ("found", 1) } else { ("not_found", 0) };
    let (key, size) = (encoded(key), length.unwrap_or(0));
    format!("type=item_get key={key} status={status} clsid={class} cfd={socket} size={size}")
}

/// The effect of a storage command.
pub struct ItemStore<'a> {
    pub key: &'a [u8],
    pub status: &'a str,
    pub command: &'a str,
    pub ttl_s: u32,
    pub length: usize,
}

pub fn item_store(item: &ItemStore<'_>, socket: i32) -> String {
    let ItemStore { status, command, ttl_s, length, .. } = item;
    let key = encoded(item.key);
    format!(
        "type=item_store key={key} status={status} cmd={command} ttl={ttl_s} clsid=1 cfd={socket} size={length}"
    )
}

pub fn deleted(key: &[u8], command: &str, length: usize) -> String {
    format!("type=deleted key={} cmd={command} clsid=1 size={length}", encoded(key))
}

/// An item makes room for others.
pub fn eviction(key: &[u8], item: &Item<'_>, now_s: u32) -> String {
    let (key, fetched) = (encoded(key), if item.fetched { "yes" } else { "no" });
    let ttl_s = match item.expires_s {
        0 => -1,
        at_s => i64::from(at_s) - i64::from(now_s),
    };
    let (idle_s, length) = (now_s.saturating_sub(item.accessed_s), item.value.len());
    format!("type=eviction key={key} fetch={fetched} ttl={ttl_s} la={idle_s} clsid=1 size={length}")
}

pub fn connection_began(peer: &Peer) -> String {
    format!("type=conn_new {} cfd={}", origin(peer), peer.socket)
}

pub fn connection_ended(peer: &Peer) -> String {
    let reason = peer.end_reason().name();
    format!("type=conn_close {} reason={reason} cfd={}", origin(peer), peer.socket)
}

/// Where a connection comes from.
fn origin(peer: &Peer) -> String {
    let remote = peer.address.strip_prefix("tcp:").and_then(|address| address.rsplit_once(':'));
    match remote {
        Some((host, port)) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            format!("rip={host} rport={port} transport=tcp")
        }
        None => "rip=unix rport=0 transport=local".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use cachemark_storage::Marks;

    use super::*;

    #[test]
    fn lines_are_as_memcached_writes_them() {
        let item = Item {
            value: b"1234",
            flags: 0,
            cas: 1,
            expires_s: 0,
            accessed_s: 100,
            fetched: true,
            marks: Marks::default(),
        };
        let lines = [
            item_get(b"a b", None, 7),
            item_get(b"k", Some(4), 7),
            item_store(
                &ItemStore { key: b"k", status: "stored", command: "set", ttl_s: 0, length: 4 },
                7,
            ),
            deleted(b"k", "md", 4),
            eviction(b"k", &item, 103),
        ];
        assert_eq!(
            lines,
            [
                "type=item_get key=a%20b status=not_found clsid=0 cfd=7 size=0",
                "type=item_get key=k status=found clsid=1 cfd=7 size=4",
                "type=item_store key=k status=stored cmd=set ttl=0 clsid=1 cfd=7 size=4",
                "type=deleted key=k cmd=md clsid=1 size=4",
                "type=eviction key=k fetch=yes ttl=-1 la=3 clsid=1 size=4",
            ]
        );
    }

    #[test]
    fn connections_have_an_origin_and_an_end() {
        let of = |address: &str| Peer::new(9, address.to_owned(), String::new(), 0, None);
        assert_eq!(
            connection_began(&of("tcp:[::1]:80")),
            "type=conn_new rip=::1 rport=80 transport=tcp cfd=9"
        );
        let unix = of("unix:/tmp/x");
        unix.ends_because(crate::state::peer::EndReason::Normal);
        assert_eq!(
            connection_ended(&unix),
            "type=conn_close rip=unix rport=0 transport=local reason=normal cfd=9"
        );
    }
}
