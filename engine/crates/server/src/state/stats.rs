//! `stats` and its topics: the counters and settings of this server, under memcached's names.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cachemark_protocol::words::unsigned;
use rustix::process::{Resource, getrlimit};

use crate::state::clock::now_s;
use crate::state::server_state::State;

/// The size of a slot of the hash table.
const SLOT_BYTES: u64 = 8;

/// A name and its value, in memcached's form.
pub type Row = (Cow<'static, str>, String);

/// The answer to a topic.
pub enum Answer {
    Rows(Vec<Row>),
    /// A reply of the text protocol that does not consist of rows.
    Text(Vec<u8>),
}

/// Append the text protocol's reply to `stats [topic]`.
pub fn write(topic: &[u8], state: &State, out: &mut Vec<u8>) {
    match answer(topic, state) {
        Some(Answer::Rows(rows)) => {
            for (name, value) in rows {
                out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
            }
            out.extend_from_slice(b"END\r\n");
        }
        Some(Answer::Text(text)) => out.extend_from_slice(&text),
        None => out.extend_from_slice(b"ERROR\r\n"),
    }
}

/// The answer to a topic; `None` if the topic does not exist.
pub fn answer(topic: &[u8], state: &State) -> Option<Answer> {
    let mut words = topic.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    // Words behind a topic without arguments are ignored, as in memcached.
    let rows = match words.next().unwrap_or_default() {
        b"" => general(state),
        b"settings" => settings(state),
        b"items" => items(state),
        b"slabs" => slabs(state),
        b"sizes" => vec![row("sizes_status", "disabled")],
        b"conns" => connections(state),
        b"cachedump" => return Some(Answer::Text(dump(words.next(), words.next(), state))),
        b"reset" => {
            state.reset_counters();
            return Some(Answer::Text(b"RESET\r\n".to_vec()));
        }
        _ => return None,
    };
    Some(Answer::Rows(rows))
}

fn row(name: impl Into<Cow<'static, str>>, value: impl ToString) -> Row {
    (name.into(), value.to_string())
}

fn rows<const N: usize>(numbers: [(&'static str, u64); N]) -> impl Iterator<Item = Row> {
    numbers.into_iter().map(|(name, value)| row(name, value))
}

fn general(state: &State) -> Vec<Row> {
    let mut rows = process(state);
    rows.extend(store_counters(state));
    rows
}

/// Rows on the process and its connections.
fn process(state: &State) -> Vec<Row> {
    let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let mut table = vec![
        row("pid", std::process::id()),
        row("uptime", state.uptime_s()),
        row("time", now_s()),
        row("version", state.version),
        row("pointer_size", usize::BITS),
    ];
    if let Some((user, system)) = cpu_times() {
        let seconds = |time: Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
        table.extend([row("rusage_user", seconds(user)), row("rusage_system", seconds(system))]);
    }
    table.extend(rows([
        ("max_connections", state.settings.max_connections),
        ("curr_connections", load(&state.current_connections)),
        ("total_connections", load(&state.total_connections)),
        ("rejected_connections", load(&state.rejected_connections)),
        ("auth_cmds", load(&state.logins)),
        ("auth_errors", load(&state.failed_logins)),
        ("bytes_read", load(&state.bytes_read)),
        ("bytes_written", load(&state.bytes_written)),
        ("accepting_conns", 1),
        ("listen_disabled_num", load(&state.failed_connections)),
        ("threads", state.settings.threads as u64),
        ("cmd_flush", load(&state.flushes)),
        ("cmd_meta", load(&state.meta_commands)),
        ("store_too_large", load(&state.too_large)),
        ("store_no_memory", load(&state.no_memory)),
    ]));
    table
}

/// The CPU time of this process, in user mode and in the kernel.
fn cpu_times() -> Option<(Duration, Duration)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may contain spaces; the times are the 14th and the 15th field.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = rustix::param::clock_ticks_per_second().max(1);
    let mut time = || {
        let ticked: u64 = fields.next()?.parse().ok()?;
        Some(Duration::from_nanos(ticked * 1_000_000_000 / ticks))
    };
    Some((time()?, time()?))
}

/// Rows of the store's counters.
fn store_counters(state: &State) -> impl Iterator<Item = Row> {
    let usage = state.store.usage(now_s());
    let counted = &usage.counters;
    rows([
        ("cmd_get", counted.get_hits + counted.get_misses),
        ("cmd_set", counted.sets),
        ("cmd_touch", counted.touch_hits + counted.touch_misses),
        ("get_hits", counted.get_hits),
        ("get_misses", counted.get_misses),
        ("get_expired", counted.get_expired),
        ("delete_misses", counted.delete_misses),
        ("delete_hits", counted.delete_hits),
        ("incr_misses", counted.incr_misses),
        ("incr_hits", counted.incr_hits),
        ("decr_misses", counted.decr_misses),
        ("decr_hits", counted.decr_hits),
        ("cas_misses", counted.cas_misses),
        ("cas_hits", counted.cas_hits),
        ("cas_badval", counted.cas_badval),
        ("touch_hits", counted.touch_hits),
        ("touch_misses", counted.touch_misses),
        ("limit_maxbytes", usage.limit_bytes),
        ("hash_power_level", (usage.table_bytes / SLOT_BYTES).ilog2().into()),
        ("hash_bytes", usage.table_bytes),
        ("bytes", usage.bytes),
        ("curr_items", usage.items),
        ("total_items", counted.total_items),
        ("expired_unfetched", counted.expired_unfetched),
        ("evicted_unfetched", counted.evicted_unfetched),
        ("evictions", counted.evictions),
    ])
}

fn settings(state: &State) -> Vec<Row> {
    let settings = &state.settings;
    let yes = |is: bool| if is { "yes" } else { "no" };
    let addresses = state.addresses.get().map_or(&[][..], Vec::as_slice);
    let port = |address: Option<&String>| {
        address.and_then(|address| address.rsplit(':').next()).unwrap_or("0").to_owned()
    };
    let unix = addresses.iter().find_map(|address| address.strip_prefix("unix:"));
    let udp = addresses.iter().find(|address| address.starts_with("udp:"));
    let tcp = addresses.iter().find(|at| !at.starts_with("udp:") && !at.starts_with("unix:"));
    let host = tcp.and_then(|address| address.rsplit_once(':')).map_or("NULL", |(host, _)| host);
    let mut table = vec![
        row("maxbytes", settings.memory_bytes),
        row("maxconns", settings.max_connections),
        row("tcpport", port(tcp)),
        row("udpport", port(udp)),
        row("inter", host),
        row("verbosity", 0),
        row("evictions", "on"),
        row("domain_socket", unix.unwrap_or("NULL")),
        row("shutdown_command", "no"),
        row("num_threads", settings.threads),
        row("stat_key_prefix", ":"),
        row("detail_enabled", "no"),
        row("cas_enabled", "yes"),
        row("binding_protocol", "auto-negotiate"),
        row("auth_enabled_sasl", yes(state.requires_login())),
        row("auth_enabled_ascii", yes(state.requires_login())),
        row("item_size_max", settings.item_bytes_max),
        row("maxconns_fast", "yes"),
        row("flush_enabled", "yes"),
        row("dump_enabled", "yes"),
        row("idle_timeout", 0),
        row("track_sizes", "no"),
        row("ssl_enabled", yes(state.tls().is_some())),
        row("io", settings.io.name()),
    ];
    if let Some(most) = getrlimit(Resource::Nofile).current {
        table.push(row("nofile", most));
    }
    table
}

/// All items are of one class, because this store has no slabs.
fn items(state: &State) -> Vec<Row> {
    let usage = state.store.usage(now_s());
    if usage.items == 0 {
        return Vec::new();
    }
    rows([
        ("items:1:number", usage.items),
        ("items:1:mem_requested", usage.bytes),
        ("items:1:evicted", usage.counters.evictions),
        ("items:1:expired_unfetched", usage.counters.expired_unfetched),
        ("items:1:evicted_unfetched", usage.counters.evicted_unfetched),
        ("items:1:outofmemory", state.no_memory.load(Ordering::Relaxed)),
    ])
    .collect()
}

/// The size of a slab page of memcached. Tools do not show a class without pages.
const PAGE_BYTES: u64 = 1 << 20;

/// The same class, as if each item were a chunk.
fn slabs(state: &State) -> Vec<Row> {
    let usage = state.store.usage(now_s());
    let counted = &usage.counters;
    let mut table = Vec::new();
    if usage.items > 0 {
        table.extend(rows([
            ("1:chunk_size", state.settings.item_bytes_max),
            ("1:total_pages", usage.bytes.div_ceil(PAGE_BYTES)),
            ("1:total_chunks", usage.items),
            ("1:used_chunks", usage.items),
            ("1:free_chunks", 0),
            ("1:mem_requested", usage.bytes),
            ("1:get_hits", counted.get_hits),
            ("1:cmd_set", counted.sets),
            ("1:delete_hits", counted.delete_hits),
            ("1:incr_hits", counted.incr_hits),
            ("1:decr_hits", counted.decr_hits),
            ("1:cas_hits", counted.cas_hits),
            ("1:cas_badval", counted.cas_badval),
            ("1:touch_hits", counted.touch_hits),
        ]));
    }
    table.extend(rows([
        ("active_slabs", u64::from(usage.items > 0)),
        ("total_malloced", usage.bytes),
    ]));
    table
}

fn connections(state: &State) -> Vec<Row> {
    let now_s = now_s();
    let of_each = state.peers().into_iter().flat_map(move |peer| {
        let socket = peer.socket;
        [
            row(format!("{socket}:addr"), &peer.address),
            row(format!("{socket}:listen_addr"), &peer.listener),
            row(format!("{socket}:secs_since_last_cmd"), peer.idle_s(now_s)),
        ]
    });
    of_each.collect()
}

/// A dump ends after the item that makes it longer than this.
const DUMP_BYTES_MAX: usize = 2 << 20;

/// `stats cachedump`: some items of a class, of which there is one. A limit of 0 means no limit.
fn dump(class: Option<&[u8]>, limit: Option<&[u8]>, state: &State) -> Vec<u8> {
    let (Some(class), Some(limit)) = (class, limit) else {
        return b"CLIENT_ERROR bad command line\r\n".to_vec();
    };
    let (Some(class), Some(limit)) = (unsigned(class), unsigned(limit)) else {
        return b"CLIENT_ERROR bad command line format\r\n".to_vec();
    };
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    let (mut out, mut count) = (Vec::new(), 0);
    if class == 1 {
        state.store.for_each(now_s(), |key, item| {
            out.extend_from_slice(b"ITEM ");
            out.extend_from_slice(key);
            let line = format!(" [{} b; {} s]\r\n", item.value.len(), item.expires_s);
            out.extend_from_slice(line.as_bytes());
            count += 1;
            count < limit && out.len() < DUMP_BYTES_MAX
        });
    }
    out.extend_from_slice(b"END\r\n");
    out
}
