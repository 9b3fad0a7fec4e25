//! Where to listen, by memcached's -s, -p, -U and -l.

use std::net::TcpListener;

use cachemark_server::Endpoint;

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
            let (plain, interface) = without_prefix(interface);
            (plain, address(interface, port))
        })
    };
    let tcp = at(configuration.port).map(|(plain, address)| {
        if plain { Endpoint::PlainTcp(address) } else { Endpoint::Tcp(address) }
    });
    let udp = at(configuration.udp_port).map(|(_, address)| Endpoint::Udp(address));
    tcp.chain(udp).collect()
}

/// An interface without memcached's prefix for a listener without TLS, and whether it had the prefix.
fn without_prefix(interface: &str) -> (bool, &str) {
    interface.strip_prefix("notls:").map_or((false, interface), |rest| (true, rest))
}

/// All addresses: those of IPv6 include those of IPv4, if the machine has IPv6.
fn every_address() -> &'static str {
    if TcpListener::bind("[::]:0").is_ok() { "::" } else { "0.0.0.0" }
}

/// An interface with its own port, or with this one; -1 is any free port.
fn address(interface: &str, port: i64) -> String {
    let port = if port < 0 { 0 } else { port };
    // `tag[name]:` names the listener for memcached's proxy.
    let tag = interface.strip_prefix("tag[").and_then(|rest| rest.split_once("]:"));
    let interface = tag.map_or(interface, |(_, rest)| rest);
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
        let plain = |address: &str| Endpoint::PlainTcp(address.to_owned());
        assert_eq!(
            listed(&["notls:127.0.0.1", "notls:[::1]:5", "[::1]:6"], 7, 0),
            [plain("127.0.0.1:7"), plain("[::1]:5"), tcp("[::1]:6")]
        );
    }
}
