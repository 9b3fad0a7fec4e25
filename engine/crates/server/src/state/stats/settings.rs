//! `stats settings`. Names and order as in memcached 1.6.45 with all that it can be built with; settings that it has
//! and this server has not are shown with memcached's defaults.

use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use crate::state::event_log::kinds;
use crate::state::server_state::State;
use crate::state::settings::Protocol;
use crate::state::stats::rows::{Row, row, yes_or_no};
use crate::state::tls::{ClientCertificates, Tls};
use crate::state::tuning::Tuning;

pub fn table(state: &State) -> Vec<Row> {
    let tuning = state.tuning().clone();
    let mut table = network(state, &tuning);
    table.extend(protocol(state, &tuning));
    table.extend(store(state, &tuning));
    table.extend(queues(state, &tuning));
    table.extend(EXTERNAL_STORAGE.map(|(name, value)| row(name, value)));
    let free_ratio = format!("{:.3}", tuning.slab_automove_free_ratio);
    table.extend([row("slab_automove_freeratio", free_ratio), row("ext_drop_unread", "no")]);
    table.extend(tls(state, &tuning));
    let memory_file = tuning.memory_file.as_ref();
    let memory_file = memory_file.map_or("(null)".into(), |path| path.to_string_lossy());
    table.extend([
        row("num_napi_ids", 0),
        row("memory_file", memory_file),
        row("client_flags_size", size_of::<u32>()),
        row("io", state.settings.io.name()),
    ]);
    if let Some(most) = getrlimit(Resource::Nofile).current {
        table.push(row("nofile", most));
    }
    table
}

/// memcached's default.
const REQUESTS_PER_EVENT: u32 = 20;

/// The settings of memcached's storage on disks.
const EXTERNAL_STORAGE: [(&str, &str); 9] = [
    ("ext_item_size", "512"),
    ("ext_item_age", "4294967295"),
    ("ext_low_ttl", "0"),
    ("ext_recache_rate", "2000"),
    ("ext_wbuf_size", "4194304"),
    ("ext_compact_under", "0"),
    ("ext_drop_under", "0"),
    ("ext_max_sleep", "1000000"),
    ("ext_max_frag", "0.80"),
];

/// The rows with a constant are settings of OpenSSL that rustls has not.
fn tls(state: &State, tuning: &Tuning) -> Vec<Row> {
    let tls = state.tls().map(Tls::settings);
    let path = |of: Option<&PathBuf>, none: &str| {
        of.map_or(none.to_owned(), |path| path.to_string_lossy().into_owned())
    };
    // The number of OpenSSL's SSL_VERIFY_PEER, with or without SSL_VERIFY_FAIL_IF_NO_PEER_CERT.
    let verify_mode = match tls.map_or(ClientCertificates::Ignored, |tls| tls.clients) {
        ClientCertificates::Ignored => 0,
        ClientCertificates::Verified => 1,
        ClientCertificates::Required => 3,
    };
    let newest = tls.is_some_and(|tls| tls.only_1_3);
    vec![
        row("ssl_enabled", yes_or_no(tls.is_some())),
        row("ssl_chain_cert", path(tls.map(|tls| &tls.certificates), "(null)")),
        row("ssl_key", path(tls.map(|tls| &tls.key), "(null)")),
        row("ssl_verify_mode", verify_mode),
        row("ssl_keyformat", 1),
        row("ssl_ciphers", tls.and_then(|tls| tls.ciphers.as_deref()).unwrap_or("NULL")),
        row("ssl_ca_cert", path(tls.and_then(|tls| tls.authorities.as_ref()), "NULL")),
        row("ssl_wbuf_size", u64::from(tuning.tls_buffer_kibibytes) << 10),
        row("ssl_session_cache", yes_or_no(tuning.tls_session_cache)),
        row("ssl_kernel_tls", yes_or_no(tuning.tls_kernel)),
        row("ssl_min_version", if newest { "tlsv1.3" } else { "tlsv1.2" }),
    ]
}

fn network(state: &State, tuning: &Tuning) -> Vec<Row> {
    let settings = &state.settings;
    let listening = state.listening.get().map_or(&[][..], Vec::as_slice);
    let addresses = || listening.iter().map(|at| at.address.as_str());
    let port = |address: Option<&str>| {
        address.and_then(|address| address.rsplit(':').next()).unwrap_or("0").to_owned()
    };
    let unix = addresses().find_map(|address| address.strip_prefix("unix:"));
    let udp = addresses().find(|address| address.starts_with("udp:"));
    let tcp = addresses().find(|at| !at.starts_with("udp:") && !at.starts_with("unix:"));
    let host = tcp.and_then(|address| address.rsplit_once(':')).map_or("NULL", |(host, _)| host);
    vec![
        row("maxbytes", state.store.limit_bytes()),
        row("maxconns", settings.max_connections),
        row("tcpport", port(tcp)),
        row("udpport", port(udp)),
        row("inter", host),
        row("verbosity", tuning.verbosity),
        row("oldest", 0),
        row("evictions", if state.store.evicts() { "on" } else { "off" }),
        row("domain_socket", unix.unwrap_or("NULL")),
        row("umask", format!("{:o}", settings.unix_mode)),
        row("shutdown_command", yes_or_no(settings.commands.shutdown)),
        row("growth_factor", format!("{:.2}", tuning.growth_factor)),
        row("chunk_size", tuning.chunk_size),
        row("num_threads", settings.threads),
        row("num_threads_per_udp", 1),
    ]
}

fn protocol(state: &State, tuning: &Tuning) -> Vec<Row> {
    let settings = &state.settings;
    let protocol = match settings.protocol {
        Protocol::Any => "auto-negotiate",
        Protocol::Text => "ascii",
        Protocol::Binary => "binary",
    };
    let logs_in = |other: Protocol| yes_or_no(state.requires_login() && settings.protocol != other);
    vec![
        row("stat_key_prefix", char::from(settings.prefix_delimiter)),
        row("detail_enabled", yes_or_no(state.log.wants(kinds::DETAIL))),
        row("reqs_per_event", settings.requests_per_event.unwrap_or(REQUESTS_PER_EVENT)),
        row("cas_enabled", yes_or_no(tuning.cas)),
        row("tcp_backlog", settings.backlog),
        row("binding_protocol", protocol),
        row("auth_enabled_sasl", logs_in(Protocol::Text)),
        row("auth_enabled_ascii", logs_in(Protocol::Binary)),
        row("item_size_max", settings.item_bytes_max),
        row("maxconns_fast", yes_or_no(tuning.rejects_at_once)),
    ]
}

fn store(state: &State, tuning: &Tuning) -> Vec<Row> {
    let commands = &state.settings.commands;
    vec![
        row("hashpower_init", tuning.hash_power),
        row("slab_reassign", yes_or_no(tuning.slab_reassign)),
        row("slab_automove", tuning.slab_automove),
        row("slab_automove_ratio", format!("{:.2}", tuning.slab_automove_ratio)),
        row("slab_automove_window", tuning.slab_automove_window),
        row("slab_chunk_max", tuning.slab_chunk_max),
        row("lru_crawler", yes_or_no(tuning.crawler)),
        row("lru_crawler_sleep", tuning.crawler_sleep_us),
        row("lru_crawler_tocrawl", tuning.crawler_items_max),
        row("tail_repair_time", tuning.tail_repair_s),
        row("flush_enabled", yes_or_no(commands.flush)),
        row("dump_enabled", yes_or_no(commands.dump)),
        row("hash_algorithm", &tuning.hash_algorithm),
        row("lru_maintainer_thread", yes_or_no(tuning.lru_maintainer)),
        row("lru_segmented", yes_or_no(tuning.lru_segmented)),
        row("hot_lru_pct", tuning.hot_percent),
        row("warm_lru_pct", tuning.warm_percent),
        row("hot_max_factor", format!("{:.2}", tuning.hot_factor)),
        row("warm_max_factor", format!("{:.2}", tuning.warm_factor)),
        row("temp_lru", yes_or_no(tuning.temporary_lru)),
        row("temporary_ttl", tuning.temporary_ttl_s),
    ]
}

fn queues(state: &State, tuning: &Tuning) -> Vec<Row> {
    vec![
        row("idle_timeout", state.settings.idle_timeout_s),
        row("watcher_logbuf_size", state.settings.watcher_buffer_bytes),
        row("worker_logbuf_size", tuning.worker_log_bytes),
        row("read_buf_mem_limit", 0),
        row("track_sizes", yes_or_no(tuning.track_sizes)),
        row("inline_ascii_response", "no"),
        row("drop_privileges", "no"),
    ]
}
