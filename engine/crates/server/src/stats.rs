//! `stats` and its topics: what this server really counts, under memcached's names.

use std::sync::atomic::Ordering;

use crate::state::{State, now_s};

/// A name and its value, as memcached writes it.
pub type Row = (&'static str, String);

/// Append the text protocol's reply to `stats [topic]`.
pub fn write(topic: &[u8], state: &State, out: &mut Vec<u8>) {
    match rows(topic, state) {
        Some(_) if topic == b"reset" => out.extend_from_slice(b"RESET\r\n"),
        Some(rows) => {
            for (name, value) in rows {
                out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
            }
            out.extend_from_slice(b"END\r\n");
        }
        None => out.extend_from_slice(b"ERROR\r\n"),
    }
}

/// What a topic has to say; `None` when there is no such topic. That of `reset` counts from 0 again
/// and says nothing.
pub fn rows(topic: &[u8], state: &State) -> Option<Vec<Row>> {
    match topic {
        b"" => Some(general(state)),
        b"settings" => Some(settings(state)),
        b"items" => Some(items(state)),
        b"reset" => {
            state.reset_counters();
            Some(Vec::new())
        }
        _ => None,
    }
}

fn general(state: &State) -> Vec<Row> {
    let usage = state.store.usage(now_s());
    let counted = &usage.counters;
    let load = Ordering::Relaxed;
    let rows: [(&str, u64); 38] = [
        ("pid", u64::from(std::process::id())),
        ("uptime", state.uptime_s()),
        ("time", u64::from(now_s())),
        ("pointer_size", usize::BITS.into()),
        ("max_connections", state.settings.max_connections),
        ("curr_connections", state.current_connections.load(load)),
        ("total_connections", state.total_connections.load(load)),
        ("rejected_connections", state.rejected_connections.load(load)),
        ("cmd_get", counted.get_hits + counted.get_misses),
        ("cmd_set", counted.sets),
        ("cmd_flush", state.flushes.load(load)),
        ("cmd_touch", counted.touch_hits + counted.touch_misses),
        ("cmd_meta", state.meta_commands.load(load)),
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
        ("bytes_read", state.bytes_read.load(load)),
        ("bytes_written", state.bytes_written.load(load)),
        ("limit_maxbytes", usage.limit_bytes),
        ("accepting_conns", 1),
        ("threads", state.settings.threads as u64),
        ("bytes", usage.bytes),
        ("curr_items", usage.items),
        ("total_items", counted.total_items),
        ("expired_unfetched", counted.expired_unfetched),
        ("evicted_unfetched", counted.evicted_unfetched),
        ("evictions", counted.evictions),
    ];
    let version = ("version", state.version.to_owned());
    let counted = rows.into_iter().map(|(name, value)| (name, value.to_string()));
    std::iter::once(version).chain(counted).collect()
}

fn settings(state: &State) -> Vec<Row> {
    let settings = &state.settings;
    vec![
        ("maxbytes", settings.memory_bytes.to_string()),
        ("maxconns", settings.max_connections.to_string()),
        ("num_threads", settings.threads.to_string()),
        ("item_size_max", settings.item_bytes_max.to_string()),
        ("cas_enabled", "yes".to_owned()),
        ("evictions", "on".to_owned()),
        ("binding_protocol", "auto-negotiate".to_owned()),
        ("io", settings.io.name().to_owned()),
    ]
}

/// One class holds all: this store has no slabs.
fn items(state: &State) -> Vec<Row> {
    let usage = state.store.usage(now_s());
    if usage.items == 0 {
        return Vec::new();
    }
    [
        ("items:1:number", usage.items),
        ("items:1:mem_requested", usage.bytes),
        ("items:1:evicted", usage.counters.evictions),
        ("items:1:expired_unfetched", usage.counters.expired_unfetched),
        ("items:1:evicted_unfetched", usage.counters.evicted_unfetched),
    ]
    .map(|(name, value)| (name, value.to_string()))
    .into()
}
