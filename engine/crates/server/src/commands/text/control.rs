//! Commands that control the server: their words are checked, and answered, as memcached does. Most of what they
//! set has no effect here (see `state/tuning.rs`).

use std::sync::atomic::Ordering;

use cachemark_protocol::text::command::ControlVerb;
use cachemark_protocol::words::{Words, signed, unsigned, unsigned_as_in_c};

use crate::commands::context::RequestContext;
use crate::commands::text::dump::{Dump, DumpForm};
use crate::state::server_state::Shutdown;
use crate::state::tls::Tls;

/// The result of a control command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A reply line.
    Reply(&'static [u8]),
    /// A list of all items follows.
    Dump(Dump),
    /// The connection ends without a reply.
    Close,
}

const OK: Outcome = Outcome::Reply(b"OK\r\n");
const ERROR: Outcome = Outcome::Reply(b"ERROR\r\n");
const MALFORMED: Outcome = Outcome::Reply(b"CLIENT_ERROR bad command line format\r\n");
const BAD_CLASS: Outcome = Outcome::Reply(b"BADCLASS invalid class id\r\n");
const CRAWLER_DISABLED: Outcome = Outcome::Reply(b"CLIENT_ERROR lru crawler disabled\r\n");

/// memcached has slab classes 1 to 63.
const CLASSES: std::ops::Range<u64> = 1..64;

/// Carry out a control command.
#[inline(never)]
pub fn carry_out(verb: ControlVerb, words: Words<'_>, context: &RequestContext<'_>) -> Outcome {
    let mut all = [&b""[..]; 6];
    let mut count = 0;
    for word in words {
        if let Some(place) = all.get_mut(count) {
            *place = word;
        }
        count += 1;
    }
    let words = &all[..count.min(all.len())];
    match verb {
        ControlVerb::Verbosity => verbosity(words, context),
        ControlVerb::MemoryLimit => memory_limit(words, context),
        ControlVerb::Slabs => slabs(words, context),
        ControlVerb::Lru => lru(words, context),
        ControlVerb::Crawler => crawler(words, context),
        ControlVerb::Shutdown => shutdown(words, context),
        ControlVerb::RefreshCertificates => refresh_certificates(context),
        ControlVerb::DebugTime => debug_time(words, context),
    }
}

/// More digits of a number of 32 bits than this are refused, zeros too.
const DIGITS_32_MAX: usize = 11;

/// A number of 32 bits.
fn number(word: &[u8]) -> Option<u32> {
    let number = unsigned(word).filter(|_| word.len() <= DIGITS_32_MAX)?;
    u32::try_from(number).ok()
}

fn decimal(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word.trim_ascii())
        .ok()?
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

/// Whether a word is this one, or the beginning of it.
fn names(word: &[u8], name: &str) -> bool {
    name.as_bytes().starts_with(word)
}

/// Higher levels are the same as this one.
const VERBOSITY_MAX: u32 = 2;

fn verbosity(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    let Some(level) = words.first().and_then(|word| number(word)) else { return MALFORMED };
    context.state.tuning().verbosity = level.min(VERBOSITY_MAX);
    OK
}

fn memory_limit(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    match words.first().and_then(|word| number(word)).map(u64::from) {
        None => ERROR,
        Some(0..8) => Outcome::Reply(b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"),
        Some(1_000_000_001..) => {
            Outcome::Reply(b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n")
        }
        Some(mebibytes) if context.state.set_memory_limit(mebibytes << 20) => OK,
        Some(_) => Outcome::Reply(b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"),
    }
}

fn slabs(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    match words {
        [verb, from, to] if names(verb, "reassign") => reassign(from, to, context),
        [verb, more @ ..] if names(verb, "automove") && !more.is_empty() => automove(more, context),
        _ => ERROR,
    }
}

/// `slabs reassign`. Any class may use the memory of any other at any time: nothing has to move. There is no pool of
/// pages, so that none goes to class 0.
fn reassign(from: &[u8], to: &[u8], context: &RequestContext<'_>) -> Outcome {
    if !context.state.tuning().slab_reassign {
        return Outcome::Reply(b"CLIENT_ERROR slab reassignment disabled\r\n");
    }
    let class = |word| signed(word).filter(|number| i32::try_from(*number).is_ok());
    let (Some(from), Some(to)) = (class(from), class(to)) else { return MALFORMED };
    let sizes = context.state.store.size_classes().map_or(0, |sizes| sizes.largest().len());
    let valid = |class: i64| (0..=sizes as i64).contains(&class);
    if from == to {
        return Outcome::Reply(b"SAME src and dst class are identical\r\n");
    }
    // memcached chooses a source itself if that is -1, and finds none if no class has a spare page.
    if !valid(to) || !valid(from) {
        return Outcome::Reply(b"BADCLASS invalid src or dst class id\r\n");
    }
    let usage = context.state.store.usage_by_size(context.now_s);
    let class = usize::try_from(from - 1).ok().and_then(|class| usage.get(class));
    match class {
        Some(class) if to > 0 && class.was_used => OK,
        _ => Outcome::Reply(b"NOSPARE source class has no spare pages\r\n"),
    }
}

fn automove(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    let argument = words.get(1);
    let mut tuning = context.state.tuning();
    if names(words[0], "ratio") {
        let Some(ratio) = argument.and_then(|word| decimal(word)) else { return ERROR };
        tuning.slab_automove_ratio = ratio;
    } else if names(words[0], "freeratio") {
        let Some(ratio) = argument.and_then(|word| decimal(word)) else { return ERROR };
        tuning.slab_automove_free_ratio = ratio;
    } else if names(words[0], "window") {
        match argument.and_then(|word| number(word)) {
            None => return MALFORMED,
            Some(window @ 3..=1800) => tuning.slab_automove_window = window,
            Some(_) => {
                return Outcome::Reply(b"CLIENT_ERROR automove window too low or too high\r\n");
            }
        }
    } else {
        match number(words[0]) {
            None => return MALFORMED,
            Some(level @ 0..=2) => tuning.slab_automove = level,
            Some(_) => return ERROR,
        }
    }
    OK
}

fn lru(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    let mut tuning = context.state.tuning();
    match words {
        [verb, hot, warm, hot_factor, warm_factor, ..] if names(verb, "tune") => {
            let numbers = number(hot).zip(number(warm));
            let factors = decimal(hot_factor).zip(decimal(warm_factor));
            let (Some((hot, warm)), Some(factors)) = (numbers, factors) else { return ERROR };
            if hot.saturating_add(warm) > 80 {
                return Outcome::Reply(b"ERROR hot and warm pcts must not exceed 80\r\n");
            }
            if factors.0 <= 0.0 || factors.1 <= 0.0 {
                return Outcome::Reply(b"ERROR hot/warm age factors must be greater than 0\r\n");
            }
            (tuning.hot_percent, tuning.warm_percent) = (hot, warm);
            (tuning.hot_factor, tuning.warm_factor) = factors;
        }
        [verb, mode, ..] if names(verb, "mode") && tuning.lru_maintainer => match *mode {
            b"flat" => tuning.lru_segmented = false,
            b"segmented" => tuning.lru_segmented = true,
            _ => return ERROR,
        },
        [verb, ttl, ..] if names(verb, "temp_ttl") && tuning.lru_maintainer => {
            let ttl = signed(ttl).and_then(|ttl| i32::try_from(ttl).ok());
            let Some(ttl) = ttl else { return ERROR };
            tuning.temporary_lru = ttl >= 0;
            if let Ok(ttl_s) = u32::try_from(ttl) {
                tuning.temporary_ttl_s = ttl_s;
            }
        }
        _ => return ERROR,
    }
    OK
}

/// `lru_crawler`. `crawl` removes at once what the server otherwise removes bit by bit.
fn crawler(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    let mut tuning = context.state.tuning();
    match words {
        [verb, class] if names(verb, "crawl") => match classes(class) {
            _ if !tuning.crawler => CRAWLER_DISABLED,
            Some(_) => {
                crawl(context);
                OK
            }
            None => BAD_CLASS,
        },
        [verb, class] if names(verb, "metadump") || names(verb, "mgdump") => {
            let form = if names(verb, "metadump") { DumpForm::Details } else { DumpForm::Gets };
            match classes(class) {
                _ if !tuning.crawler => CRAWLER_DISABLED,
                _ if !context.state.may_dump(context.socket) => Outcome::Reply(form.refusal()),
                _ if context.has_replied() => Outcome::Reply(form.pipelined()),
                Some(classes) => Outcome::Dump(Dump { form, classes }),
                None => BAD_CLASS,
            }
        }
        [verb, most] if names(verb, "tocrawl") => {
            let Some(most) = number(most) else { return MALFORMED };
            tuning.crawler_items_max = most;
            OK
        }
        [verb, sleep] if names(verb, "sleep") => match number(sleep) {
            None => MALFORMED,
            Some(1_000_001..) => {
                Outcome::Reply(b"CLIENT_ERROR sleep must be one second or less\r\n")
            }
            Some(sleep_us) => {
                tuning.crawler_sleep_us = sleep_us;
                OK
            }
        },
        [verb] if names(verb, "enable") => {
            if std::mem::replace(&mut tuning.crawler, true) {
                return Outcome::Reply(b"ERROR failed to start lru crawler thread\r\n");
            }
            OK
        }
        [verb] if names(verb, "disable") => {
            tuning.crawler = false;
            OK
        }
        _ => ERROR,
    }
}

/// Remove the items that have expired.
fn crawl(context: &RequestContext<'_>) {
    let state = context.state;
    state.store.remove_expired(context.now_s);
    state.crawls.fetch_add(1, Ordering::Relaxed);
}

/// The named classes, a bit for each number: `all`, `hash`, or numbers with commas between. `None` if a name is invalid.
fn classes(word: &[u8]) -> Option<u64> {
    if word == b"all" || word == b"hash" {
        return Some(u64::MAX);
    }
    let numbers = word
        .split(|byte| *byte == b',')
        .map(|part| unsigned_as_in_c(part).filter(|class| CLASSES.contains(class)));
    numbers.map(|class| Some(1 << class?)).try_fold(0, |all, one| Some(all | one?))
}

fn refresh_certificates(context: &RequestContext<'_>) -> Outcome {
    match context.state.tls().map(Tls::refresh) {
        None => Outcome::Reply(b"Error TLS not enabled\r\n"),
        Some(Ok(())) => OK,
        Some(Err(_)) => Outcome::Reply(b"Error loading the certificate chain or its key\r\n"),
    }
}

fn shutdown(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    if !context.state.settings.commands.shutdown {
        return Outcome::Reply(b"SERVER_ERROR: shutdown not enabled\r\n");
    }
    match words {
        [] => context.state.shut_down(Shutdown::Now),
        [b"graceful"] => context.state.shut_down(Shutdown::Graceful),
        _ => return Outcome::Reply(b"CLIENT_ERROR invalid shutdown mode\r\n"),
    }
    Outcome::Close
}

/// `debugtime`: move the clock by seconds, or stop it (`p`), or let it run again (`r`).
fn debug_time(words: &[&[u8]], context: &RequestContext<'_>) -> Outcome {
    let clock = &context.state.clock;
    match words.first() {
        Some(_) if !context.state.settings.commands.debug => return ERROR,
        Some(word) if names(word, "p") => clock.stop(),
        Some(word) if names(word, "r") => clock.resume(),
        Some(word) => match signed(word) {
            Some(seconds) => clock.advance(seconds),
            None => return ERROR,
        },
        None => return ERROR,
    }
    OK
}
