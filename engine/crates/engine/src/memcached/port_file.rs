//! The file that the environment variable MEMCACHED_PORT_FILENAME names: on which ports the server listens.

use std::path::Path;

/// Write the ports of these addresses. The file appears whole.
pub fn write(path: &Path, addresses: &[String]) -> Result<(), String> {
    let named = |error| format!("{}: {error}", path.display());
    let mut begun = path.as_os_str().to_owned();
    begun.push(".lck");
    std::fs::write(&begun, lines(addresses))
        .and_then(|()| std::fs::rename(&begun, path))
        .inspect_err(|_| drop(std::fs::remove_file(&begun)))
        .map_err(named)
}

fn lines(addresses: &[String]) -> String {
    let line = |address: &String| {
        let (kind, address) = match address.strip_prefix("udp:") {
            Some(address) => ("UDP", address),
            None => ("TCP", address.as_str()),
        };
        let (host, port) = address.rsplit_once(':')?;
        let family = if host.starts_with('[') { "INET6" } else { "INET" };
        Some(format!("{kind} {family}: {port}\n"))
    };
    addresses.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn each_port_has_a_line() {
        let addresses = ["127.0.0.1:7", "udp:0.0.0.0:8", "[::]:9"].map(str::to_owned);
        assert_eq!(lines(&addresses), "TCP INET: 7\nUDP INET: 8\nTCP INET6: 9\n");
    }
}
