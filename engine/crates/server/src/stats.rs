//! `stats` and its topics: what this server really counts, under memcached's names.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::Ordering;

use crate::state::{State, now_s};

/// Append the reply to `stats [topic]`.
pub fn write(topic: &[u8], state: &State, out: &mut Vec<u8>) {
    match topic {
        b"" => general(state, out),
        b"settings" => settings(state, out),
        b"items" => items(state, out),
        b"reset" => {
            state.reset_counters();
            out.extend_from_slice(b"RESET\r\n");
            return;
        }
        _ => {
            out.extend_from_slice(b"ERROR\r\n");
            return;
        }
    }
    out.extend_from_slice(b"END\r\n");
}

fn line(out: &mut Vec<u8>, name: &str, value: impl Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "STAT {name} {value}\r\n");
}

fn general(state: &State, out: &mut Vec<u8>) {
    let usage = state.store.usage(now_s());
    let counted = &usage.counters;
    let load = Ordering::Relaxed;
    let rows: [(&str, u64); 37] = [
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
    line(out, "version", state.version);
    for (name, value) in rows {
        line(out, name, value);
    }
}

fn settings(state: &State, out: &mut Vec<u8>) {
    let settings = &state.settings;
    line(out, "maxbytes", settings.memory_bytes);
    line(out, "maxconns", settings.max_connections);
    line(out, "num_threads", settings.threads);
    line(out, "item_size_max", settings.item_bytes_max);
    line(out, "cas_enabled", "yes");
    line(out, "evictions", "on");
    line(out, "binding_protocol", "ascii");
    line(out, "io", settings.io.name());
}

fn items(state: &State, out: &mut Vec<u8>) {
    let usage = state.store.usage(now_s());
    if usage.items > 0 {
        // One class holds all: this store has no slabs.
        line(out, "items:1:number", usage.items);
        line(out, "items:1:mem_requested", usage.bytes);
        line(out, "items:1:evicted", usage.counters.evictions);
        line(out, "items:1:expired_unfetched", usage.counters.expired_unfetched);
        line(out, "items:1:evicted_unfetched", usage.counters.evicted_unfetched);
    }
}
