//! Where to listen, by memcached's -s, -p, -U and -l.

use std::net::TcpListener;

use cachemark_server::{ClientCertificates, Endpoint, Security};

use crate::memcached::configuration::Configuration;

/// The endpoints. A Unix socket excludes the network.
pub fn of(configuration: &Configuration) -> Vec<Endpoint> {
    if let Some(path) = &configuration.unix {
        return vec![Endpoint::Unix(path.clone())];
    }
    let every = [every_address().to_owned()];
    let interfaces = match &configuration.interfaces[..] {
        [] => &every[..],
        some => some,
    };
    let at = |port: i64| {
        let ports = interfaces.iter().filter(move |_| port != 0);
        ports.map(move |interface| {
            let (security, interface) = without_prefix(interface);
            (security, address(interface, port))
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

/// The listener's own rule for TLS, and the rest.
fn without_prefix(interface: &str) -> (Option<Security>, &str) {
    let rest = |word| interface.strip_prefix(word)?.strip_prefix(':');
    let found = PREFIXES.iter().find_map(|(word, of)| rest(*word).map(|rest| (Some(*of), rest)));
    found.unwrap_or((None, interface))
}

/// The word of an interface that means something with `-Z` only.
pub fn tls_word(interface: &str) -> Option<&'static str> {
    let security = without_prefix(interface).0?;
    PREFIXES.iter().find(|(_, of)| *of == security).map(|(word, _)| *word)
}

/// Whether the interface asks for a protocol of its own.
pub fn has_protocol(interface: &str) -> bool {
    without_prefix(interface).1.starts_with("proto[")
}

/// All addresses: those of IPv6 include those of IPv4, if the machine has IPv6.
fn every_address() -> &'static str {
    if TcpListener::bind("[::]:0").is_ok() { "::" } else { "0.0.0.0" }
}

/// An interface with its own port, or with this one; -1 is any free port.
fn address(interface: &str, port: i64) -> String {
    let port = if port < 0 { 0 } else { port };
    // `tag[name]:` or `tag_name_:` names the listener for memcached's proxy.
    let named = |start, end| interface.strip_prefix(start)?.split_once(end);
    let tag = named("tag[", "]:").or_else(|| named("tag_", "_:"));
    let interface = tag.map_or(interface, |(_, rest): (&str, &str)| rest);
    let has_port = interface.rsplit_once(':').is_some_and(|(host, port)| {
        let whole_host = !host.contains(':') || host.ends_with(']');
        whole_host && port.parse::<u16>().is_ok()
    });
    match interface {
        _ if has_port => interface.to_owned(),
        "*" => format!("{}:{port}", bracketed(every_address())),
        _ => format!("{}:{port}", bracketed(interface)),
    }
}

fn bracketed(host: &str) -> String {
    let bare = host.contains(':') && !host.starts_with('[');
    if bare { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(interfaces: &[&str], port: i64, udp_port: i64) -> Vec<Endpoint> {
        let interfaces = interfaces.iter().map(|&interface| interface.to_owned()).collect();
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
        assert!(listed(&["127.0.0.1"], 0, 0).is_empty());
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
