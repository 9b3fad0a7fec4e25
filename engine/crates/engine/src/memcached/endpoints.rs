//! Where to listen, by memcached's -s, -p, -U and -l.

use std::net::TcpListener;

use cachemark_server::{ClientCertificates, Endpoint, Security};

use crate::memcached::configuration::Configuration;

/// The endpoints. A Unix socket excludes the network.
pub fn of(configuration: &Configuration) -> Vec<Endpoint> {
    if let Some(path) = &configuration.unix {
        return vec![Endpoint::Unix(path.clone())];
    }
    let every = ["*".to_owned()];
    let interfaces = configuration.interfaces.as_deref().unwrap_or(&every);
    let at = |port: i64| {
        let ports = interfaces.iter().filter(move |_| port != 0);
        ports.flat_map(move |interface| {
            let (security, place) = without_prefix(interface);
            addresses(place, port).into_iter().map(move |address| (security, address))
        })
    };
    let tcp = at(configuration.port).map(|(security, address)| match security {
        Some(security) => Endpoint::TcpWith(address, security),
        None => Endpoint::Tcp(address),
    });
    let udp = at(configuration.udp_port).map(|(_, address)| Endpoint::Udp(address));
    tcp.chain(udp).collect()
}

/// The words before an interface that say what its listener does with TLS.
const PREFIXES: [(&str, Security); 3] = [
    ("notls", Security::Plain),
    ("btls", Security::Tls(ClientCertificates::Ignored)),
    ("mtls", Security::Tls(ClientCertificates::Required)),
];

/// Such a word, its rule, and the rest of the interface.
fn split_prefix(interface: &str) -> Option<(&'static str, Security, &str)> {
    let rest = |word| interface.strip_prefix(word)?.strip_prefix(':');
    PREFIXES.iter().find_map(|(word, of)| rest(*word).map(|rest| (*word, *of, rest)))
}

/// The listener's own rule for TLS, and the rest.
fn without_prefix(interface: &str) -> (Option<Security>, &str) {
    split_prefix(interface).map_or((None, interface), |(_, of, rest)| (Some(of), rest))
}

/// The word of an interface that means something with `-Z` only.
pub fn tls_word(interface: &str) -> Option<&'static str> {
    split_prefix(interface).map(|(word, _, _)| word)
}

/// Whether the interface asks for a protocol of its own.
pub fn has_protocol(interface: &str) -> bool {
    without_prefix(interface).1.starts_with("proto[")
}

/// memcached's tags of listeners, which are for its proxy, have this number of bytes.
const TAG_BYTES: std::ops::RangeInclusive<usize> = 1..=8;

/// The fault of an interface, in memcached's words.
pub fn fault(interface: &str) -> Option<String> {
    let place = without_prefix(interface).1;
    if let Some(tagged) = place.strip_prefix("tag").filter(|rest| rest.starts_with(['[', '_'])) {
        match split_tag(place) {
            None => return Some(format!("Invalid tag in socket config: \"{tagged}\"")),
            Some((tag, _)) if !TAG_BYTES.contains(&tag.len()) => {
                return Some(format!(
                    "Listener tags must be between 1 and 8 characters: \"{tag}\""
                ));
            }
            Some(_) => {}
        }
    }
    let port = split_port(without_tag(place)).1?;
    let is_port = port.parse::<i64>().is_ok_and(|port| (-1..=65535).contains(&port));
    (!is_port).then(|| format!("Invalid port number: \"{port}\""))
}

/// The tag before an interface, `tag[name]:` or `tag_name_:`, and the rest.
fn split_tag(place: &str) -> Option<(&str, &str)> {
    let named = |start, end| place.strip_prefix(start)?.split_once(end);
    named("tag[", "]:").or_else(|| named("tag_", "_:"))
}

fn without_tag(place: &str) -> &str {
    split_tag(place).map_or(place, |(_, rest)| rest)
}

/// A host, without its brackets, and its own port. More than one colon is an address of IPv6.
fn split_port(place: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match place.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, Some(port)),
        _ => (place, None),
    }
}

/// The addresses of an interface with its own port, or with this one; -1 is any free port.
fn addresses(place: &str, port: i64) -> Vec<String> {
    let (host, own) = split_port(without_tag(place));
    let port = own.and_then(|own| own.parse().ok()).unwrap_or(port).max(0);
    let hosts: &[&str] = match host {
        "*" if has_ipv6() => &["0.0.0.0", "::"],
        "*" => &["0.0.0.0"],
        _ => &[host],
    };
    hosts.iter().map(|host| format!("{}:{port}", bracketed(host))).collect()
}

fn has_ipv6() -> bool {
    TcpListener::bind("[::]:0").is_ok()
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(interfaces: &[&str], port: i64, udp_port: i64) -> Vec<Endpoint> {
        let interfaces = Some(interfaces.iter().map(|&name| name.to_owned()).collect());
        of(&Configuration { interfaces, port, udp_port, ..Configuration::default() })
    }

    #[test]
    fn interfaces_may_have_ports() {
        let tcp = |address: &str| Endpoint::Tcp(address.to_owned());
        let udp = |address: &str| Endpoint::Udp(address.to_owned());
        assert_eq!(listed(&["127.0.0.1"], 11211, 0), [tcp("127.0.0.1:11211")]);
        assert_eq!(listed(&["127.0.0.1"], -1, 9), [tcp("127.0.0.1:0"), udp("127.0.0.1:9")]);
        assert_eq!(
            listed(&["::1", "[::1]:5", "tag[a]:1.2.3.4:6"], 7, 0),
            [tcp("[::1]:7"), tcp("[::1]:5"), tcp("1.2.3.4:6")]
        );
        assert_eq!(
            listed(&["[127.0.0.1]:5", "127.0.0.1:-1", "::"], 7, 0),
            [tcp("127.0.0.1:5"), tcp("127.0.0.1:0"), tcp("[::]:7")]
        );
        let every = ["0.0.0.0:5", "[::]:5"].map(tcp);
        assert!(every.starts_with(&listed(&["*:5"], 7, 0)));
        assert!(listed(&["127.0.0.1"], 0, 0).is_empty() && listed(&[], 7, 7).is_empty());
        let with = |address: &str, of| Endpoint::TcpWith(address.to_owned(), of);
        assert_eq!(
            listed(&["notls:127.0.0.1", "notls:[::1]:5", "[::1]:6"], 7, 0),
            [
                with("127.0.0.1:7", Security::Plain),
                with("[::1]:5", Security::Plain),
                tcp("[::1]:6")
            ]
        );
        assert_eq!(
            listed(&["btls:127.0.0.1", "mtls:tag_tools_:127.0.0.1:11212"], 7, 0),
            [
                with("127.0.0.1:7", Security::Tls(ClientCertificates::Ignored)),
                with("127.0.0.1:11212", Security::Tls(ClientCertificates::Required))
            ]
        );
    }
}
