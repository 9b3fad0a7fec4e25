//! The fuzz targets: each has a property and seeds.

use crate::client::{self, complete_or_incomplete};
use crate::{
    between, connections, datagrams, packets, player, scripts, seeds, session, store,
    store_actions, tapes, traces,
};

/// A fuzz target, which `fuzz/fuzz_targets/NAME.rs` passes to libFuzzer.
pub struct Target {
    pub name: &'static str,
    /// Panics if the property does not hold for an input.
    pub check: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: &[Target] = &[
    Target { name: "server_text", check: server_text, seeds: seeds::text_requests },
    Target { name: "server_meta", check: server_meta, seeds: seeds::meta_requests },
    Target { name: "server_binary", check: server_binary, seeds: seeds::binary_requests },
    Target { name: "server_login", check: server_login, seeds: seeds::logins },
    Target { name: "server_udp", check: datagrams::framed_like_a_session, seeds: seeds::datagrams },
    Target { name: "connections", check: connections, seeds: seeds::connections },
    Target { name: "client_text", check: client_text, seeds: seeds::text_replies },
    Target { name: "client_meta", check: client_meta, seeds: seeds::meta_replies },
    Target { name: "client_binary", check: client_binary, seeds: seeds::binary_replies },
    Target {
        name: "client",
        check: player::counts_every_operation_once,
        seeds: player::valid_replies,
    },
    Target { name: "store", check: store, seeds: seeds::store_actions },
    Target { name: "store_small", check: store_small, seeds: seeds::store_actions },
    Target { name: "store_counts", check: store_counts, seeds: seeds::store_actions },
    Target { name: "tape", check: tapes::refused_or_harmless, seeds: seeds::tapes },
    Target { name: "trace", check: traces::refused_or_playable, seeds: seeds::traces },
    Target {
        name: "trace_packed",
        check: traces::decompressed_or_refused,
        seeds: seeds::packed_traces,
    },
    Target { name: "trace_columns", check: columns, seeds: seeds::trace_columns },
    Target {
        name: "trace_file",
        check: traces::file_refused_or_rewritten,
        seeds: seeds::trace_files,
    },
    Target { name: "metadump", check: traces::items_or_counted, seeds: seeds::metadumps },
    Target { name: "capture", check: packets::refused_or_read, seeds: seeds::captures },
    Target { name: "segments", check: packets::segments_do_not_matter, seeds: seeds::segments },
    Target {
        name: "conversation",
        check: packets::conversation_is_read,
        seeds: seeds::captured_conversations,
    },
    Target { name: "fault_proxy", check: fault_proxy, seeds: seeds::conversations },
    Target { name: "script", check: script, seeds: seeds::scripts },
    #[cfg(feature = "options")]
    Target { name: "options", check: options, seeds: seeds::options },
];

/// The target with this name.
///
/// # Panics
///
/// If there is none.
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("a target of TARGETS")
}

/// Single bytes, or pieces whose lengths come from the input itself.
fn cuts(bytes: &[u8]) -> Vec<usize> {
    match bytes.len() % 2 {
        0 => vec![1],
        _ => bytes.iter().take(16).map(|byte| 1 + usize::from(*byte) % 40).collect(),
    }
}

fn server_text(bytes: &[u8]) {
    session::answers_do_not_depend_on_splits(session::empty, bytes, &cuts(bytes));
    scripts::splits_requests_like_a_session(bytes);
}

fn server_meta(bytes: &[u8]) {
    session::answers_do_not_depend_on_splits(session::with_items, bytes, &cuts(bytes));
}

fn server_binary(bytes: &[u8]) {
    server_meta(bytes);
    scripts::splits_requests_like_a_session(bytes);
}

fn server_login(bytes: &[u8]) {
    session::answers_do_not_depend_on_splits(session::with_login, bytes, &cuts(bytes));
    session::clients_without_login_get_nothing(bytes);
}

fn connections(bytes: &[u8]) {
    connections::only_complete_requests_count(&connections::pieces(bytes));
}

fn fault_proxy(bytes: &[u8]) {
    if let [fault, rest @ ..] = bytes {
        between::changes_only_what_the_fault_says(*fault, &connections::pieces(rest));
    }
}

fn client_text(bytes: &[u8]) {
    complete_or_incomplete::<client::Text>(bytes);
}

fn client_meta(bytes: &[u8]) {
    complete_or_incomplete::<client::Meta>(bytes);
}

fn client_binary(bytes: &[u8]) {
    complete_or_incomplete::<client::Binary>(bytes);
}

fn store(bytes: &[u8]) {
    store::matches_a_map(store_actions::actions(bytes, 6, 40));
}

fn store_small(bytes: &[u8]) {
    store::evicts_or_matches_a_map(store_actions::actions(bytes, 60, 5000));
}

fn store_counts(bytes: &[u8]) {
    store::counters_add_up(store_actions::uses(bytes));
}

fn script(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        scripts::refused_or_played(text);
    }
}

fn columns(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        traces::columns_or_a_reason(text);
    }
}

#[cfg(feature = "options")]
fn options(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        crate::options::refused_or_a_tape(text);
    }
}
