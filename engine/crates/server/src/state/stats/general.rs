//! `stats` without a topic. Names and order as in memcached 1.6.45.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cachemark_storage::Usage;

use crate::state::server_state::State;
use crate::state::settings::IoMode;
use crate::state::stats::rows::{Row, row, rows, zeros};
use crate::state::tuning::Tuning;

/// The size of a slot of the hash table.
const SLOT_BYTES: u64 = 8;

pub fn table(state: &State) -> Vec<Row> {
    let usage = state.store.usage(state.now_s());
    let tuning = state.tuning().clone();
    let mut table = process(state);
    table.extend(connections(state, &tuning));
    table.extend(commands(state, &usage));
    table.extend(resources(state, &usage));
    table.extend(background_work(state, &tuning));
    table.extend(log(state));
    table.extend(items(&usage, &tuning));
    if state.settings.io == IoMode::Busy {
        table.push(row("idle_polls_us", load(&state.idle_polls_ns) / 1000));
    }
    table
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn process(state: &State) -> Vec<Row> {
    let (user, system) = cpu_times();
    let seconds = |time: Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    vec![
        row("pid", std::process::id()),
        row("uptime", state.uptime_s()),
        row("time", state.now_s()),
        row("version", state.version),
        row("libevent", "none"),
        row("pointer_size", usize::BITS),
        row("rusage_user", seconds(user)),
        row("rusage_system", seconds(system)),
    ]
}

/// The CPU time of this process, in user mode and in the kernel.
fn cpu_times() -> (Duration, Duration) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is the caller's own, and all zeros are valid; the call cannot fail for this process.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    (time(usage.ru_utime), time(usage.ru_stime))
}

fn connections(state: &State, tuning: &Tuning) -> Vec<Row> {
    let current = load(&state.current_connections);
    let mut table: Vec<Row> = rows([
        ("max_connections", state.settings.max_connections),
        ("curr_connections", current),
        ("total_connections", load(&state.total_connections)),
    ])
    .collect();
    if tuning.rejects_at_once {
        table.push(row("rejected_connections", load(&state.rejected_connections)));
    }
    table.push(row("connection_structures", current));
    table.extend(zeros([
        "response_obj_oom",
        "response_obj_count",
        "response_obj_bytes",
        "read_buf_count",
        "read_buf_bytes",
        "read_buf_bytes_free",
        "read_buf_oom",
        "reserved_fds",
    ]));
    table
}

fn commands(state: &State, usage: &Usage) -> Vec<Row> {
    let counted = &usage.counters;
    let table = rows([
        ("cmd_get", counted.get_hits + counted.get_misses),
        ("cmd_set", counted.sets),
        ("cmd_flush", load(&state.flushes)),
        ("cmd_touch", counted.touch_hits + counted.touch_misses),
        ("cmd_meta", load(&state.meta_commands)),
        ("get_hits", counted.get_hits),
        ("get_misses", counted.get_misses),
        ("get_expired", counted.get_expired),
        ("get_flushed", counted.get_flushed),
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
        ("store_too_large", load(&state.too_large)),
        ("store_no_memory", load(&state.no_memory)),
        ("auth_cmds", load(&state.logins)),
        ("auth_errors", load(&state.failed_logins)),
    ]);
    let idle =
        (state.settings.idle_timeout_s > 0).then(|| row("idle_kicks", load(&state.idle_kicks)));
    table.chain(idle).collect()
}

fn resources(state: &State, usage: &Usage) -> impl Iterator<Item = Row> {
    rows([
        ("bytes_read", load(&state.bytes_read)),
        ("bytes_written", load(&state.bytes_written)),
        ("limit_maxbytes", usage.limit_bytes),
        ("accepting_conns", 1),
        ("listen_disabled_num", load(&state.failed_connections)),
        ("time_in_listen_disabled_us", 0),
        ("threads", state.settings.threads as u64),
        ("conn_yields", load(&state.yields)),
        ("hash_power_level", (usage.table_bytes / SLOT_BYTES).ilog2().into()),
        ("hash_bytes", usage.table_bytes),
        ("hash_is_expanding", 0),
    ])
}

/// Counters of memcached's background threads. Of them, this server has the crawler only.
fn background_work(state: &State, tuning: &Tuning) -> Vec<Row> {
    let mut table = Vec::new();
    if tuning.slab_reassign {
        table.extend(zeros([
            "slab_reassign_rescues",
            "slab_reassign_chunk_rescues",
            "slab_reassign_inline_reclaim",
            "slab_reassign_busy_items",
            "slab_reassign_busy_deletes",
            "slab_reassign_busy_nomem",
        ]));
        table.push(row("slab_reassign_last_busy_status", "none"));
        table.extend(zeros(["slab_reassign_running", "slabs_moved"]));
    }
    if tuning.crawler {
        table.extend(rows([
            ("lru_crawler_running", 0),
            ("lru_crawler_starts", load(&state.crawls)),
        ]));
    }
    if tuning.lru_maintainer {
        table.extend(zeros(["lru_maintainer_juggles"]));
    }
    table
}

fn log(state: &State) -> Vec<Row> {
    let mut table: Vec<Row> = rows([
        ("malloc_fails", 0),
        ("log_worker_dropped", 0),
        ("log_worker_written", load(&state.log.written)),
        ("log_watcher_skipped", load(&state.log.skipped)),
        ("log_watcher_sent", load(&state.log.sent)),
        ("log_watchers", state.log.watchers()),
    ])
    .collect();
    if let Some(tls) = state.tls() {
        let errors = tls.errors();
        table.extend([
            row("ssl_handshake_errors", load(&errors.handshake)),
            row("ssl_proto_errors", load(&errors.protocol)),
            row("time_since_server_cert_refresh", tls.age_s()),
        ]);
    }
    table.extend(zeros(["unexpected_napi_ids", "round_robin_fallback"]));
    table
}

fn items(usage: &Usage, tuning: &Tuning) -> Vec<Row> {
    let counted = &usage.counters;
    let mut table: Vec<Row> = rows([
        ("bytes", usage.bytes),
        ("curr_items", usage.items),
        ("total_items", counted.total_items),
        ("slab_global_page_pool", 0),
        ("expired_unfetched", counted.expired_unfetched),
        ("evicted_unfetched", counted.evicted_unfetched),
    ])
    .collect();
    if tuning.lru_maintainer {
        table.extend(zeros(["evicted_active"]));
    }
    table.push(row("evictions", counted.evictions));
    table.extend(rows([
        ("reclaimed", counted.reclaimed),
        ("crawler_reclaimed", counted.crawler_reclaimed),
    ]));
    table.extend(zeros(["crawler_items_checked", "lrutail_reflocked"]));
    if tuning.lru_maintainer {
        table.extend(zeros([
            "moves_to_cold",
            "moves_to_warm",
            "moves_within_lru",
            "direct_reclaims",
            "lru_bumps_dropped",
        ]));
    }
    table
}
