//! The worker `native`: the engine's client, which plays a tape against servers.

use std::time::Duration;

use cachemark_load::{Address, ClientOptions, WireName};
use cachemark_tape::Verb;

use crate::options::connection_options::{OptionError, of_options};
use crate::options::extent::check_extent;
use crate::worker::messages::{Prepare, Ready};

/// The answer to `hello`: the client's capabilities.
pub fn hello() -> Ready {
    let kinds = Verb::ALL.into_iter().flat_map(|verb| {
        let quiet = verb.may_be_noreply().then(|| verb.kind(true));
        std::iter::once(verb.kind(false)).chain(quiet)
    });
    let mut capabilities: Vec<&str> = WireName::ALL.iter().map(|wire| wire.name()).collect();
    capabilities.extend([
        "threads",
        "pipeline",
        "in_order",
        "refill_all",
        "open_loop",
        "unix",
        "cluster",
        "think",
        "timeline",
        "slices",
        "groups",
        "calls",
        "trailing_space",
    ]);
    capabilities.extend(["login_sasl", "login_text"]);
    capabilities.extend(cfg!(feature = "tls").then_some("tls"));
    capabilities.extend(kinds);
    Ready {
        client: Some("native"),
        library: Some("cachemark-engine"),
        library_version: Some(env!("CARGO_PKG_VERSION")),
        language: Some("rust"),
        runtime: Some("native".to_owned()),
        capabilities,
        ..Ready::default()
    }
}

/// The options of a `prepare`.
pub fn options(prepare: &Prepare) -> Result<ClientOptions, OptionError> {
    let (hashing, connection_options) = of_options(&prepare.wire, &prepare.options)?;
    if prepare.servers.is_empty() {
        return Err(OptionError::Unsupported("no server".to_owned(), "name one, or several"));
    }
    let (threads, connections) = (prepare.threads as u64, prepare.connections as u64);
    check_extent(threads, connections, prepare.depth as u64).map_err(OptionError::Failed)?;
    let addresses = prepare.servers.iter().map(|server| Address::parse(server));
    Ok(ClientOptions {
        addresses: addresses.collect::<Result<_, _>>().map_err(OptionError::Failed)?,
        hashing,
        connection_options,
        threads: prepare.threads,
        connections: prepare.connections,
        depth: prepare.depth,
        refill: prepare.refill.parse().map_err(OptionError::Failed)?,
        segment: prepare.segment,
        timeout: Duration::from_millis(prepare.timeout_ms),
    })
}
