//! The fuzz targets: a property and the inputs that a search begins with.

use crate::client::{self, whole_or_not_there};
use crate::{connections, datagrams, draws, player, scripts, seeds, session, store, tapes, traces};

/// One target: `fuzz/fuzz_targets/NAME.rs` gives it to libFuzzer.
pub struct Target {
    pub name: &'static str,
    /// Panics where the property does not hold of an input.
    pub check: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "server_text", check: server_text, seeds: seeds::text_requests },
    Target { name: "server_meta", check: server_meta, seeds: seeds::meta_requests },
    Target { name: "server_binary", check: server_binary, seeds: seeds::binary_requests },
    Target { name: "server_login", check: server_login, seeds: seeds::logins },
    Target { name: "server_udp", check: datagrams::framed, seeds: seeds::datagrams },
    Target { name: "connections", check: connections, seeds: seeds::connections },
    Target { name: "client_text", check: client_text, seeds: seeds::text_replies },
    Target { name: "client_meta", check: client_meta, seeds: seeds::meta_replies },
    Target { name: "client_binary", check: client_binary, seeds: seeds::binary_replies },
    Target { name: "client", check: player::counts_everything_once, seeds: player::right_answers },
    Target { name: "store", check: store, seeds: seeds::draws },
    Target { name: "store_small", check: store_small, seeds: seeds::draws },
    Target { name: "store_counts", check: store_counts, seeds: seeds::draws },
    Target { name: "tape", check: tapes::refused_or_harmless, seeds: seeds::tapes },
    Target { name: "trace", check: traces::refused_or_playable, seeds: seeds::traces },
    Target {
        name: "trace_packed",
        check: traces::unpacked_or_refused,
        seeds: seeds::packed_traces,
    },
    Target { name: "script", check: script, seeds: seeds::scripts },
    #[cfg(feature = "options")]
    Target { name: "options", check: options, seeds: seeds::options },
];

/// The target of that name.
///
/// # Panics
///
/// Where there is none.
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("a target of TARGETS")
}

/// One byte at a time, or pieces of lengths that the input itself has in it.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    match bytes.len() % 2 {
        0 => vec![1],
        _ => bytes.iter().take(16).map(|byte| 1 + usize::from(*byte) % 40).collect(),
    }
}

fn server_text(bytes: &[u8]) {
    session::alike_however_cut(session::empty, bytes, &cuts(bytes));
    scripts::framed_as_a_session_does(bytes);
}

fn server_meta(bytes: &[u8]) {
    session::alike_however_cut(session::filled, bytes, &cuts(bytes));
}

fn server_binary(bytes: &[u8]) {
    server_meta(bytes);
    scripts::framed_as_a_session_does(bytes);
}

fn server_login(bytes: &[u8]) {
    session::alike_however_cut(session::guarded, bytes, &cuts(bytes));
    session::strangers_get_nothing(bytes);
}

fn connections(bytes: &[u8]) {
    connections::only_whole_requests_count(&connections::pieces(bytes));
}

fn client_text(bytes: &[u8]) {
    whole_or_not_there::<client::Text>(bytes);
}

fn client_meta(bytes: &[u8]) {
    whole_or_not_there::<client::Meta>(bytes);
}

fn client_binary(bytes: &[u8]) {
    whole_or_not_there::<client::Binary>(bytes);
}

fn store(bytes: &[u8]) {
    store::agrees_with_a_map(draws::actions(bytes, 6, 40));
}

fn store_small(bytes: &[u8]) {
    store::forgets_or_agrees_with_a_map(draws::actions(bytes, 60, 5000));
}

fn store_counts(bytes: &[u8]) {
    store::accounts_for_everything(draws::uses(bytes));
}

fn script(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        scripts::refused_or_played(text);
    }
}

#[cfg(feature = "options")]
fn options(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        crate::options::refused_or_made(text);
    }
}
