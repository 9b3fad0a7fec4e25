//! The topics about items: all items are of one class, because this store has no slabs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cachemark_protocol::words::unsigned;

use crate::state::server_state::State;
use crate::state::settings::ITEM_HEADER_BYTES;
use crate::state::stats::rows::{Row, row, rows};

/// The size of a slab page of memcached. Tools do not show a class without pages.
const PAGE_BYTES: u64 = 1 << 20;

/// `stats items`.
pub fn items(state: &State) -> Vec<Row> {
    let usage = state.store.usage(state.now_s());
    if usage.items == 0 {
        return Vec::new();
    }
    rows([
        ("items:1:number", usage.items),
        ("items:1:number_hot", 0),
        ("items:1:number_warm", 0),
        ("items:1:number_cold", usage.items),
        ("items:1:age_hot", 0),
        ("items:1:age_warm", 0),
        ("items:1:age", 0),
        ("items:1:mem_requested", usage.bytes),
        ("items:1:evicted", usage.counters.evictions),
        ("items:1:evicted_nonzero", 0),
        ("items:1:evicted_time", 0),
        ("items:1:outofmemory", state.no_memory.load(Ordering::Relaxed)),
        ("items:1:tailrepairs", 0),
        ("items:1:reclaimed", usage.counters.reclaimed),
        ("items:1:expired_unfetched", usage.counters.expired_unfetched),
        ("items:1:evicted_unfetched", usage.counters.evicted_unfetched),
        ("items:1:evicted_active", 0),
        ("items:1:crawler_reclaimed", state.crawled.load(Ordering::Relaxed)),
        ("items:1:crawler_items_checked", 0),
        ("items:1:lrutail_reflocked", 0),
        ("items:1:moves_to_cold", 0),
        ("items:1:moves_to_warm", 0),
        ("items:1:moves_within_lru", 0),
        ("items:1:direct_reclaims", 0),
        ("items:1:hits_to_hot", 0),
        ("items:1:hits_to_warm", 0),
        ("items:1:hits_to_cold", usage.counters.get_hits),
        ("items:1:hits_to_temp", 0),
    ])
    .collect()
}

/// `stats slabs`: the same class, as if each item were a chunk.
pub fn slabs(state: &State) -> Vec<Row> {
    let usage = state.store.usage(state.now_s());
    let counted = &usage.counters;
    let mut table = Vec::new();
    // A class that had items has pages from then on, as in memcached.
    let active = usage.taken_bytes > 0;
    if active {
        table.extend(rows([
            ("1:chunk_size", state.settings.item_bytes_max),
            ("1:chunks_per_page", (PAGE_BYTES / state.settings.item_bytes_max).max(1)),
            ("1:total_pages", usage.bytes.div_ceil(PAGE_BYTES).max(1)),
            ("1:total_chunks", usage.items),
            ("1:used_chunks", usage.items),
            ("1:free_chunks", 0),
            ("1:free_chunks_end", 0),
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
    table
        .extend(rows([("active_slabs", u64::from(active)), ("total_malloced", usage.taken_bytes)]));
    table
}

/// Sizes are counted in steps of so many bytes.
const SIZE_STEP: u64 = 32;

/// `stats sizes`: how many items there are of each size, with memcached's own header.
pub fn sizes(state: &State) -> Vec<Row> {
    if !state.tuning().track_sizes {
        return vec![row("sizes_status", "disabled")];
    }
    let mut counts = BTreeMap::<u64, u64>::new();
    state.store.for_each(state.now_s(), |key, item| {
        let bytes = (key.len() + item.value.len()) as u64 + ITEM_HEADER_BYTES;
        *counts.entry(bytes.next_multiple_of(SIZE_STEP)).or_default() += 1;
        true
    });
    counts.into_iter().map(|(bytes, count)| row(bytes.to_string(), count)).collect()
}

/// A dump ends after the item that makes it longer than this.
const DUMP_BYTES_MAX: usize = 2 << 20;
/// memcached has so many classes.
const CLASSES_MAX: u64 = 64;

/// `stats cachedump`: some items of a class, of which there is one. A limit of 0 means no limit.
pub fn dump(class: Option<&[u8]>, limit: Option<&[u8]>, state: &State) -> Vec<u8> {
    let (Some(class), Some(limit)) = (class, limit) else {
        return b"CLIENT_ERROR bad command line\r\n".to_vec();
    };
    let (Some(class), Some(limit)) = (unsigned(class), unsigned(limit)) else {
        return b"CLIENT_ERROR bad command line format\r\n".to_vec();
    };
    if class >= CLASSES_MAX {
        return b"CLIENT_ERROR Illegal slab id\r\n".to_vec();
    }
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    let (mut out, mut count) = (Vec::new(), 0);
    if class == 1 {
        state.store.for_each(state.now_s(), |key, item| {
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
