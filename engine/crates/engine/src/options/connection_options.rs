//! How to connect to servers and which protocol to speak: options of the command line and of a worker.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use cachemark_command::units;
use cachemark_load::{Address, ConnectionOptions, Credentials, Hashing, IoBackend, WireName};
use clap::ValueEnum;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HashingName {
    /// Hash of the key modulo the number of servers
    Modulo,
    /// Consistent hashing as in libketama
    Ketama,
}

impl HashingName {
    fn hashing(self) -> Hashing {
        match self {
            HashingName::Modulo => Hashing::Modulo,
            HashingName::Ketama => Hashing::Ketama,
        }
    }
}

/// How servers are spoken to.
#[derive(clap::Args, Debug)]
pub struct ConnectionArguments {
    /// text, binary or meta
    #[arg(long, default_value = "text")]
    wire: WireName,
    /// I/O of the client's threads: auto, epoll or uring
    #[arg(long, default_value = "auto")]
    io: IoBackend,
    /// How several servers share the keys
    /// [default: modulo]
    #[arg(long, value_enum)]
    hashing: Option<HashingName>,
    /// Every server has every key: writes go to all servers, reads to one chosen by the key
    #[arg(long)]
    replicas: bool,
    /// Close each connection after this number of operations, and open it again. Connecting is no part of an
    /// operation's time in a closed loop; in an open loop, operations that are due meanwhile wait
    #[arg(long, value_name = "OPERATIONS", value_parser = units::whole)]
    reconnect_after: Option<u64>,
    /// USER:FILE for servers that require a login; the password is the first line of the file
    #[arg(long)]
    auth: Option<String>,
    /// TLS: a PEM file with trusted certificates, or `unverified`
    #[arg(long)]
    tls: Option<String>,
    /// TLS: the name that the server's certificate must have [default: its address]
    #[arg(long, requires = "tls")]
    tls_name: Option<String>,
    /// TLS: a PEM file with the client's own certificate
    #[arg(long, requires_all = ["tls", "tls_client_key"])]
    tls_client_cert: Option<String>,
    /// TLS: a PEM file with the key of that certificate
    #[arg(long, requires = "tls_client_cert")]
    tls_client_key: Option<String>,
}

impl ConnectionArguments {
    pub fn hashing(&self) -> Hashing {
        self.hashing.map_or_else(Hashing::default, HashingName::hashing)
    }

    /// Why this I/O is used.
    pub fn io_reason(&self) -> &'static str {
        self.io.reason()
    }

    /// Refuse options that have an effect with several servers only.
    pub fn check(&self, servers: usize) -> Result<(), String> {
        let idle = match (servers, self.hashing, self.replicas) {
            (1, Some(_), _) => "--hashing",
            (1, None, true) => "--replicas",
            _ => return Ok(()),
        };
        Err(format!(
            "{idle}: every key is on the one server; name several servers (--server a:11211,b:11211) or \
             leave it out"
        ))
    }

    /// The client's options. An error names the option and the file.
    pub fn options(&self) -> Result<ConnectionOptions, String> {
        let connection_options = ConnectionOptions {
            wire: self.wire,
            io: self.io,
            replicas: self.replicas,
            reconnect_after: self.reconnect_after.and_then(NonZeroU64::new),
            ..ConnectionOptions::default()
        };
        let connection_options = with_auth(connection_options, self.auth.as_deref())
            .map_err(|text| format!("--auth: {text}"))?;
        let tls = TlsTexts {
            trust: self.tls.clone(),
            name: self.tls_name.clone(),
            client_cert: self.tls_client_cert.clone(),
            client_key: self.tls_client_key.clone(),
        };
        with_tls(connection_options, tls).map_err(|text| format!("--tls: {text}"))
    }
}

/// Parse `host:port`, `udp:host:port` or `unix:/path`, or several of them separated by commas.
pub fn addresses(text: &str) -> Result<Vec<Address>, String> {
    text.split(',').map(|one| Address::parse(one.trim())).collect()
}

/// Why a worker cannot use its options.
pub enum OptionError {
    /// The worker does not support them: the reason and a remedy.
    Unsupported(String, &'static str),
    /// They are supported, but failed.
    Failed(String),
}

/// The hashing and the connection options that a `prepare` asks for.
pub fn of_options(
    wire: &str,
    options: &BTreeMap<String, String>,
) -> Result<(Hashing, ConnectionOptions), OptionError> {
    let wire = wire.parse().map_err(|text| OptionError::Unsupported(text, "use one of them"))?;
    let (mut hashing, mut connection_options) =
        (Hashing::default(), ConnectionOptions { wire, ..ConnectionOptions::default() });
    let mut tls = TlsTexts::default();
    for (name, value) in options {
        match (name.as_str(), value.as_str()) {
            ("hashing", "default") => hashing = Hashing::Modulo,
            ("hashing", "ketama") => hashing = Hashing::Ketama,
            ("hashing", _) => {
                let reason = format!("no hashing {value:?}");
                return Err(OptionError::Unsupported(reason, "hashing is default or ketama"));
            }
            ("io", _) => {
                connection_options.io = value
                    .parse()
                    .map_err(|text| OptionError::Unsupported(text, "use one of them"))?;
            }
            ("replicas", "on" | "off") => connection_options.replicas = value == "on",
            ("replicas", _) => {
                let reason = format!("no replicas {value:?}");
                return Err(OptionError::Unsupported(reason, "replicas is on or off"));
            }
            ("trailing_space", "yes") => connection_options.trailing_space = true,
            ("trailing_space", _) => {
                let reason = format!("no trailing_space {value:?}");
                return Err(OptionError::Unsupported(reason, "trailing_space is yes, or left out"));
            }
            ("reconnect_after", _) => {
                let operations = value.parse().map_err(|_| {
                    let reason = format!("no reconnect_after {value:?}");
                    OptionError::Unsupported(reason, "it is a number of operations, at least 1")
                })?;
                connection_options.reconnect_after = Some(operations);
            }
            ("auth", _) => {
                connection_options =
                    with_auth(connection_options, Some(value)).map_err(OptionError::Failed)?
            }
            ("tls", _) => tls.trust = Some(value.clone()),
            ("tls_name", _) => tls.name = Some(value.clone()),
            ("tls_client_cert", _) => tls.client_cert = Some(value.clone()),
            ("tls_client_key", _) => tls.client_key = Some(value.clone()),
            _ => {
                let reason = format!("no option {name:?}");
                return Err(OptionError::Unsupported(
                    reason,
                    "the native client has hashing, replicas, io, trailing_space, auth, tls, tls_name, \
                     tls_client_cert and tls_client_key",
                ));
            }
        }
    }
    Ok((hashing, with_tls(connection_options, tls).map_err(OptionError::Failed)?))
}

fn with_auth(
    connection_options: ConnectionOptions,
    text: Option<&str>,
) -> Result<ConnectionOptions, String> {
    Ok(ConnectionOptions { auth: text.map(Credentials::read).transpose()?, ..connection_options })
}

/// How to encrypt, in the words of the options.
#[derive(Default)]
struct TlsTexts {
    trust: Option<String>,
    name: Option<String>,
    client_cert: Option<String>,
    client_key: Option<String>,
}

#[cfg(feature = "tls")]
fn with_tls(
    connection_options: ConnectionOptions,
    texts: TlsTexts,
) -> Result<ConnectionOptions, String> {
    use cachemark_load::{TlsFiles, TlsTrust};
    let client = texts.client_cert.zip(texts.client_key);
    let Some(trust) = texts.trust else {
        let alone = texts.name.is_some() || client.is_some();
        return if alone { Err("tls is missing".to_owned()) } else { Ok(connection_options) };
    };
    let client = client.map(|(certificate, key)| (certificate.into(), key.into()));
    let tls = TlsTrust::read(&TlsFiles { trust, name: texts.name, client })?;
    Ok(ConnectionOptions { tls: Some(tls), ..connection_options })
}

#[cfg(not(feature = "tls"))]
fn with_tls(
    connection_options: ConnectionOptions,
    texts: TlsTexts,
) -> Result<ConnectionOptions, String> {
    let missing = "this build has no TLS; build it with the feature `tls`".to_owned();
    if texts.trust.is_some() { Err(missing) } else { Ok(connection_options) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> Result<(Hashing, ConnectionOptions), String> {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        of_options("meta", &pairs.collect()).map_err(|refusal| match refusal {
            OptionError::Unsupported(text, _) | OptionError::Failed(text) => text,
        })
    }

    #[test]
    fn options_are_known_or_refused_by_name() {
        let (hashing, connection_options) = options(&[("hashing", "ketama")]).expect("known");
        assert_eq!((connection_options.io, connection_options.replicas), (IoBackend::Auto, false));
        let (_, other) = options(&[("io", "uring"), ("replicas", "on")]).expect("known");
        assert_eq!((other.io, other.replicas), (IoBackend::Uring, true));
        assert!(options(&[("io", "fast")]).expect_err("none").contains("fast"));
        let (_, spaced) = options(&[("trailing_space", "yes")]).expect("known");
        assert!(spaced.trailing_space && !other.trailing_space);
        assert!(options(&[("trailing_space", "no")]).expect_err("none").contains("no"));
        let (_, renewed) = options(&[("reconnect_after", "7")]).expect("known");
        assert_eq!(renewed.reconnect_after, NonZeroU64::new(7));
        for count in ["0", "-1", "1.5", "many"] {
            assert!(options(&[("reconnect_after", count)]).expect_err("none").contains(count));
        }
        assert!(options(&[("replicas", "2")]).expect_err("none").contains('2'));
        assert_eq!(
            (hashing, connection_options.wire, connection_options.auth),
            (Hashing::Ketama, WireName::Meta, None)
        );
        assert!(options(&[("hashing", "random")]).expect_err("none").contains("random"));
        assert!(options(&[("colour", "red")]).expect_err("none").contains("colour"));
        assert!(options(&[("auth", "ann:/nowhere/at/all")]).expect_err("none").contains("nowhere"));
        assert!(options(&[("tls", "/nowhere/at/all")]).expect_err("none").contains("nowhere"));
    }

    #[test]
    fn servers_are_separated_by_commas() {
        let two = addresses("127.0.0.1:1, unix:/tmp/s").expect("addresses");
        assert_eq!(
            two.iter().map(Address::to_string).collect::<Vec<_>>(),
            ["127.0.0.1:1", "unix:/tmp/s"]
        );
        assert!(addresses("127.0.0.1:1,").is_err());
    }
}
