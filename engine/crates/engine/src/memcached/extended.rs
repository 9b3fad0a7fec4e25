//! The options of `-o`, as a table.

use crate::memcached::configuration::{Configuration, Ending, FAILURE, failed};
use crate::memcached::extended_option::Takes::{Checked, Nothing, Optional, Refused, Value};
use crate::memcached::extended_option::{Effect, Extended, always, ignored, refused, works};
use crate::memcached::extended_tls;
use crate::memcached::numbers::{decimal, integer, unsigned};

/// All of memcached's, and one of this server: `debugtime`.
static TABLE: [Extended; 42] = [
    works(
        "idle_timeout",
        Value("Missing numeric argument for idle_timeout", "", |text, to| {
            to.idle_timeout_s = integer(text).clamp(0, i64::from(u32::MAX)) as u32;
            true
        }),
    ),
    works("hashpower", Checked("Missing numeric argument for hashpower", hash_power)),
    works("no_hashexpand", Nothing(|to| to.fixed_table = true)),
    works(
        "watcher_logbuf_size",
        Value(
            "Missing watcher_logbuf_size argument",
            "could not parse argument to watcher_logbuf_size",
            |text, to| {
                unsigned(text)
                    .map(|kibibytes| to.watcher_buffer_bytes = (kibibytes as usize) << 10)
                    .is_some()
            },
        ),
    ),
    works("track_sizes", Nothing(|to| to.tuning.track_sizes = true)),
    works("lru_crawler", Nothing(|to| to.tuning.crawler = true)),
    works("no_lru_crawler", Nothing(|to| to.tuning.crawler = false)),
    works("debugtime", Nothing(|to| to.commands.debug = true)),
    always("modern"),
    always("no_drop_privileges"),
    always("relaxed_privileges"),
    // memcached, too, knows only their names.
    always("inline_ascii_resp"),
    always("no_inline_ascii_resp"),
    always("resp_obj_mem_limit"),
    works("maxconns_fast", Nothing(|to| to.tuning.rejects_at_once = true)),
    ignored("no_maxconns_fast", Nothing(|to| to.tuning.rejects_at_once = false)),
    ignored("slab_reassign", Nothing(|to| to.tuning.slab_reassign = true)),
    ignored("no_slab_reassign", Nothing(|to| to.tuning.slab_reassign = false)),
    ignored(
        "slab_automove",
        Optional("slab_automove must be between 0 and 2", |text, to| {
            to.tuning.slab_automove = text.map_or(1, |text| integer(text).clamp(0, 3) as u32);
            to.tuning.slab_automove <= 2 && text.is_none_or(|text| integer(text) >= 0)
        }),
    ),
    ignored("no_slab_automove", Nothing(|to| to.tuning.slab_automove = 0)),
    ignored(
        "slab_automove_ratio",
        Value(
            "Missing slab_automove_ratio argument",
            "slab_automove_ratio must be > 0 and < 1",
            |text, to| {
                to.tuning.slab_automove_ratio = decimal(text);
                to.tuning.slab_automove_ratio > 0.0 && to.tuning.slab_automove_ratio <= 1.0
            },
        ),
    ),
    ignored(
        "slab_automove_window",
        Value(
            "Missing slab_automove_window argument",
            "slab_automove_window must be > 2 and < 1800",
            |text, to| {
                to.tuning.slab_automove_window = integer(text).clamp(0, 9999) as u32;
                (3..=1800).contains(&to.tuning.slab_automove_window)
            },
        ),
    ),
    ignored(
        "slab_automove_freeratio",
        Value("Missing slab_automove_freeratio argument", "", |text, to| {
            to.tuning.slab_automove_free_ratio = decimal(text);
            true
        }),
    ),
    works(
        "slab_sizes",
        Value("Missing slab_sizes argument", "", |text, to| {
            to.slab_sizes = Some(text.to_owned());
            true
        }),
    ),
    works("slab_chunk_max", Checked("Missing slab_chunk_max argument", slab_chunk_max)),
    works("no_chunked_items", Nothing(|to| to.tuning.slab_chunk_max = 1 << 20)),
    ignored(
        "tail_repair_time",
        Value(
            "Missing numeric argument for tail_repair_time",
            "Cannot set tail_repair_time to less than 10 seconds",
            |text, to| {
                to.tuning.tail_repair_s = integer(text).clamp(0, i64::from(u32::MAX)) as u32;
                to.tuning.tail_repair_s >= 10
            },
        ),
    ),
    ignored(
        "hash_algorithm",
        Value(
            "Missing hash_algorithm argument",
            "Unknown hash_algorithm option (jenkins, murmur3, xxh3)",
            |text, to| {
                text.clone_into(&mut to.tuning.hash_algorithm);
                ["jenkins", "murmur3", "xxh3"].contains(&text)
            },
        ),
    ),
    ignored(
        "lru_crawler_sleep",
        Value(
            "Missing lru_crawler_sleep value",
            "LRU crawler sleep must be between 0 and 1 second",
            |text, to| {
                to.tuning.crawler_sleep_us = integer(text).clamp(0, 1_000_001) as u32;
                (0..=1_000_000).contains(&integer(text))
            },
        ),
    ),
    ignored(
        "lru_crawler_tocrawl",
        Value(
            "Missing lru_crawler_tocrawl value",
            "lru_crawler_tocrawl takes a numeric 32bit value",
            |text, to| unsigned(text).map(|most| to.tuning.crawler_items_max = most).is_some(),
        ),
    ),
    works(
        "lru_maintainer",
        Nothing(|to| (to.tuning.lru_maintainer, to.tuning.lru_segmented) = (true, true)),
    ),
    works(
        "no_lru_maintainer",
        Nothing(|to| (to.tuning.lru_maintainer, to.tuning.lru_segmented) = (false, false)),
    ),
    ignored(
        "hot_lru_pct",
        Value("Missing hot_lru_pct argument", "hot_lru_pct must be > 1 and < 80", |text, to| {
            to.tuning.hot_percent = integer(text).clamp(0, 100) as u32;
            (1..80).contains(&to.tuning.hot_percent)
        }),
    ),
    ignored(
        "warm_lru_pct",
        Value("Missing warm_lru_pct argument", "warm_lru_pct must be > 1 and < 80", |text, to| {
            to.tuning.warm_percent = integer(text).clamp(0, 100) as u32;
            (1..80).contains(&to.tuning.warm_percent)
        }),
    ),
    ignored(
        "hot_max_factor",
        Value("Missing hot_max_factor argument", "hot_max_factor must be > 0", |text, to| {
            to.tuning.hot_factor = decimal(text);
            to.tuning.hot_factor > 0.0
        }),
    ),
    ignored(
        "warm_max_factor",
        Value("Missing warm_max_factor argument", "warm_max_factor must be > 0", |text, to| {
            to.tuning.warm_factor = decimal(text);
            to.tuning.warm_factor > 0.0
        }),
    ),
    ignored(
        "temporary_ttl",
        Value("Missing temporary_ttl argument", "", |text, to| {
            to.tuning.temporary_lru = true;
            to.tuning.temporary_ttl_s = integer(text).max(0) as u32;
            true
        }),
    ),
    ignored(
        "worker_logbuf_size",
        Value(
            "Missing worker_logbuf_size argument",
            "could not parse argument to worker_logbuf_size",
            |text, to| {
                unsigned(text)
                    .map(|kibibytes| to.tuning.worker_log_bytes = kibibytes << 10)
                    .is_some()
            },
        ),
    ),
    refused(
        "read_buf_mem_limit",
        "read_buf_mem_limit: here buffers have a limit for each connection; leave it out, and lower -c",
    ),
    refused(
        "sock_cookie_id",
        "sock_cookie_id: this server marks no sockets; leave it out, and filter by address",
    ),
    refused(
        "drop_privileges",
        "drop_privileges: this server has no filter of system calls; leave it out, and let the service \
         manager filter (SystemCallFilter= of systemd)",
    ),
    ignored("no_modern", Nothing(no_modern)),
];

fn hash_power(text: &str, to: &mut Configuration) -> Result<(), String> {
    to.tuning.hash_power = match integer(text) {
        power @ 12..=32 => power as u32,
        power @ ..12 => return Err(format!("Initial hashtable multiplier of {power} is too low")),
        power => {
            return Err(format!(
                "Initial hashtable multiplier of {power} is too high\n\
                 Choose a value based on \"STAT hash_power_level\" from a running instance"
            ));
        }
    };
    Ok(())
}

fn slab_chunk_max(text: &str, to: &mut Configuration) -> Result<(), String> {
    let told = match text.parse::<i32>() {
        Err(_) => "could not parse argument to slab_chunk_max",
        Ok(..=0) => "slab_chunk_max must be >= 0",
        Ok(1025..) => "slab_chunk_max must be specified in kilobytes.",
        Ok(kibibytes) => {
            (to.slab_chunk_given, to.tuning.slab_chunk_max) = (true, (kibibytes as u32) << 10);
            return Ok(());
        }
    };
    Err(told.to_owned())
}

/// The defaults of memcached 1.4.
fn no_modern(to: &mut Configuration) {
    if !to.slab_chunk_given {
        to.tuning.slab_chunk_max = 1 << 20;
    }
    (to.tuning.slab_reassign, to.tuning.slab_automove) = (false, 0);
    to.tuning.rejects_at_once = false;
    (to.tuning.lru_maintainer, to.tuning.lru_segmented) = (false, false);
    to.tuning.crawler = false;
    "jenkins".clone_into(&mut to.tuning.hash_algorithm);
}

fn all() -> impl Iterator<Item = &'static Extended> {
    TABLE.iter().chain(&extended_tls::TABLE)
}

/// Apply a list of extended options.
pub fn apply(list: &str, to: &mut Configuration) -> Result<(), Ending> {
    if list.is_empty() {
        return Ok(());
    }
    // A comma at the end is allowed, an empty name is not.
    list.strip_suffix(',').unwrap_or(list).split(',').try_for_each(|item| apply_one(item, to))
}

fn apply_one(item: &str, to: &mut Configuration) -> Result<(), Ending> {
    let (name, value) = match item.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (item, None),
    };
    let known = all().find(|option| option.name == name);
    let option = known.ok_or_else(|| failed(FAILURE, format!("Illegal suboption \"{item}\"")))?;
    let (valid, wrong) = match (&option.takes, value) {
        (Nothing(set), _) => {
            set(to);
            (true, "")
        }
        (Value(missing, _, _) | Checked(missing, _), None) => {
            return Err(failed(FAILURE, *missing));
        }
        (Checked(_, set), Some(value)) => {
            set(value, to).map_err(|told| failed(FAILURE, told))?;
            (true, "")
        }
        (Value(_, wrong, set), Some(value)) => (set(value, to), *wrong),
        (Optional(wrong, set), value) => (set(value, to), *wrong),
        (Refused(message), _) => return Err(failed(FAILURE, *message)),
    };
    if !valid {
        return Err(failed(FAILURE, wrong));
    }
    if option.effect == Effect::Nothing {
        to.without_effect.push(format!("-o {name}"));
    }
    Ok(())
}

/// The names for the help: those that do something, and the others.
pub fn names() -> (Vec<&'static str>, Vec<&'static str>) {
    let named = |effect: Effect| {
        let such = all().filter(|option| option.effect == effect);
        let accepted = such.filter(|option| !matches!(option.takes, Refused(_)));
        accepted.map(|option| option.name).collect()
    };
    (named(Effect::Works), named(Effect::Nothing))
}
