//! memcached's settings of its memory and its threads, which `stats settings` shows. Most of them have no effect on this
//! server's store, which has no slab pages and no LRU lists.

use std::path::PathBuf;

/// The settings, with memcached's defaults.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// `-f`, `-n`: the sizes by which items are counted.
    pub growth_factor: f64,
    pub chunk_size: u32,
    /// `-C` switches this off.
    pub cas: bool,
    pub verbosity: u32,
    pub rejects_at_once: bool,
    pub hash_power: u32,
    pub hash_algorithm: String,
    pub slab_reassign: bool,
    pub slab_automove: u32,
    pub slab_automove_ratio: f64,
    pub slab_automove_window: u32,
    pub slab_automove_free_ratio: f64,
    pub slab_chunk_max: u32,
    /// The sizes themselves; empty to let them grow by the factor.
    pub slab_sizes: Vec<u32>,
    pub crawler: bool,
    pub crawler_sleep_us: u32,
    pub crawler_items_max: u32,
    pub tail_repair_s: u32,
    pub lru_maintainer: bool,
    pub lru_segmented: bool,
    pub hot_percent: u32,
    pub warm_percent: u32,
    pub hot_factor: f64,
    pub warm_factor: f64,
    pub temporary_lru: bool,
    pub temporary_ttl_s: u32,
    pub worker_log_bytes: u32,
    pub track_sizes: bool,
    pub tls_buffer_kibibytes: u32,
    pub tls_session_cache: bool,
    pub tls_kernel: bool,
    /// The file that has the items.
    pub memory_file: Option<PathBuf>,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            growth_factor: 1.25,
            chunk_size: 48,
            cas: true,
            verbosity: 0,
            rejects_at_once: true,
            hash_power: 0,
            hash_algorithm: "murmur3".to_owned(),
            slab_reassign: true,
            slab_automove: 1,
            slab_automove_ratio: 0.8,
            slab_automove_window: 10,
            slab_automove_free_ratio: 0.01,
            slab_chunk_max: 512 << 10,
            slab_sizes: Vec::new(),
            crawler: true,
            crawler_sleep_us: 100,
            crawler_items_max: 0,
            tail_repair_s: 0,
            lru_maintainer: true,
            lru_segmented: true,
            hot_percent: 20,
            warm_percent: 40,
            hot_factor: 0.2,
            warm_factor: 2.0,
            temporary_lru: false,
            temporary_ttl_s: 61,
            worker_log_bytes: 64 << 10,
            track_sizes: false,
            tls_buffer_kibibytes: 16,
            tls_session_cache: false,
            tls_kernel: false,
            memory_file: None,
        }
    }
}
