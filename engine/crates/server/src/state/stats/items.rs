//! The topics about items. The classes are those that memcached has for items of the same sizes; here they only count.

use std::collections::BTreeMap;

use cachemark_protocol::words::unsigned;
use cachemark_storage::ClassUsage;

use crate::state::server_state::State;
use crate::state::settings::{ITEM_HEADER_BYTES, PAGE_BYTES};
use crate::state::size_classes;
use crate::state::stats::rows::{Row, row, rows};

/// The classes that have had items: the number of each, its largest size, and what it holds.
fn classes(state: &State) -> Vec<(usize, u64, ClassUsage)> {
    let largest = state.store.size_classes().map_or(&[][..], |classes| classes.largest());
    let usage = state.store.usage_by_size(state.now_s());
    let all = (1..).zip(largest).zip(usage);
    let all = all.map(|((number, largest), usage)| (number, u64::from(*largest), usage));
    all.filter(|(_, _, usage)| usage.was_used).collect()
}

/// `stats items`.
pub fn items(state: &State) -> Vec<Row> {
    let present = classes(state).into_iter().filter(|(_, _, usage)| usage.items > 0);
    present.flat_map(|(number, _, usage)| items_of_class(number, &usage)).collect()
}

fn items_of_class(number: usize, usage: &ClassUsage) -> impl Iterator<Item = Row> + use<> {
    let counted = &usage.counters;
    let table = [
        ("number", usage.items),
        ("number_hot", 0),
        ("number_warm", 0),
        ("number_cold", usage.items),
        ("age_hot", 0),
        ("age_warm", 0),
        ("age", 0),
        ("mem_requested", usage.bytes),
        ("evicted", counted.evictions),
        ("evicted_nonzero", counted.evicted_with_expiry),
        ("evicted_time", 0),
        ("outofmemory", counted.no_room),
        ("tailrepairs", 0),
        ("reclaimed", counted.reclaimed),
        ("expired_unfetched", counted.expired_unfetched),
        ("evicted_unfetched", counted.evicted_unfetched),
        ("evicted_active", 0),
        ("crawler_reclaimed", counted.crawler_reclaimed),
        ("crawler_items_checked", 0),
        ("lrutail_reflocked", 0),
        ("moves_to_cold", 0),
        ("moves_to_warm", 0),
        ("moves_within_lru", 0),
        ("direct_reclaims", 0),
        ("hits_to_hot", 0),
        ("hits_to_warm", 0),
        ("hits_to_cold", counted.get_hits),
        ("hits_to_temp", 0),
    ];
    table.into_iter().map(move |(name, value)| row(format!("items:{number}:{name}"), value))
}

/// `stats slabs`: each item is a chunk, and no chunk is free.
pub fn slabs(state: &State) -> Vec<Row> {
    let classes = classes(state);
    let taken_bytes = state.store.usage(state.now_s()).taken_bytes;
    let of_each = classes.iter();
    let mut table: Vec<Row> =
        of_each.flat_map(|(number, largest, usage)| slab(*number, *largest, usage)).collect();
    table.extend(rows([("active_slabs", classes.len() as u64), ("total_malloced", taken_bytes)]));
    table
}

fn slab(number: usize, chunk_bytes: u64, usage: &ClassUsage) -> impl Iterator<Item = Row> + use<> {
    let counted = &usage.counters;
    let table = [
        ("chunk_size", chunk_bytes),
        ("chunks_per_page", PAGE_BYTES / chunk_bytes),
        // A class that had items has pages from then on, as in memcached.
        ("total_pages", usage.bytes.div_ceil(PAGE_BYTES).max(1)),
        ("total_chunks", usage.items),
        ("used_chunks", usage.items),
        ("free_chunks", 0),
        ("free_chunks_end", 0),
        ("get_hits", counted.get_hits),
        ("cmd_set", counted.sets),
        ("delete_hits", counted.delete_hits),
        ("incr_hits", counted.incr_hits),
        ("decr_hits", counted.decr_hits),
        ("cas_hits", counted.cas_hits),
        ("cas_badval", counted.cas_badval),
        ("touch_hits", counted.touch_hits),
    ];
    table.into_iter().map(move |(name, value)| row(format!("{number}:{name}"), value))
}

/// Sizes are counted in steps of this number of bytes.
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
/// memcached has at most this number of classes.
const CLASSES_MAX: u64 = 64;

/// `stats cachedump`: some items of a class. A limit of 0 means no limit.
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
    let sizes = state.store.size_classes();
    state.store.for_each(state.now_s(), |key, item| {
        if size_classes::number(sizes, key, item) as u64 == class {
            out.extend_from_slice(b"ITEM ");
            out.extend_from_slice(key);
            let line = format!(" [{} b; {} s]\r\n", item.value.len(), item.expires_s);
            out.extend_from_slice(line.as_bytes());
            count += 1;
        }
        count < limit && out.len() < DUMP_BYTES_MAX
    });
    out.extend_from_slice(b"END\r\n");
    out
}
