//! A prediction in words.

use cachemark_miss_ratio::{Curve, Point, Policy, Prediction, Ratio};
use cachemark_trace::file::{Origin, Summary};

use super::told::{Section, Told, counted, known, memory, mostly_new, number, percent, unread};

/// The trace, as the words name it.
pub(super) struct About<'a> {
    pub name: &'a str,
    pub origin: &'a Origin,
    pub summary: &'a Summary,
    pub has_times: bool,
    pub warm_up: f64,
}

pub(super) fn told(of: &Prediction, about: &About<'_>) -> Told<()> {
    Told {
        about: "What more or less memory would do",
        title: format!("{}: {}", about.name, headline(of)),
        facts: facts(of),
        warnings: warnings(of, about),
        sections: vec![
            misses(of, "Reads that miss", |point| point.misses, curve_notes(of, about)),
            misses(
                of,
                "Bytes that miss",
                |point| point.byte_misses,
                vec![
                    "Of the bytes of all values asked for, as far as the trace has their sizes."
                        .to_owned(),
                ],
            ),
            rules(of),
        ],
        figures: (),
    }
}

fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Memcached => "memcached",
        Policy::Memcached1633 => "memcached-1.6.33",
        Policy::Embedded => "embedded",
        Policy::Lru => "LRU",
    }
}

fn share(of: Ratio) -> String {
    let value = format!("{:.2} %", 100.0 * of.value);
    if of.error > 0.0 { format!("{value} ±{:.2}", 100.0 * of.error) } else { value }
}

/// A sentence about the middle of the sizes, beside its neighbours.
fn headline(of: &Prediction) -> String {
    let is_told = |curve: &&Curve| curve.points.iter().any(|point| point.misses.is_some());
    let Some(curve) = of.curves.iter().find(is_told) else {
        return "too few keys were followed to tell anything".to_owned();
    };
    let shown = |point: &Point| Some((memory(point.memory_bytes as f64), share(point.misses?)));
    let points: Vec<(String, String)> = curve.points.iter().filter_map(shown).collect();
    let middle = points.len() / 2;
    let (size, missed) = &points[middle];
    let mut text =
        format!("with {size}, {missed} of the reads miss in {}", policy_name(curve.policy));
    let neighbours = [middle.checked_sub(1), Some(middle + 1)].into_iter().flatten();
    let others: Vec<String> = neighbours
        .filter_map(|at| points.get(at))
        .map(|(size, missed)| format!("with {size} {missed}"))
        .collect();
    if !others.is_empty() {
        text.push_str("; ");
        text.push_str(&others.join(", "));
    }
    text
}

fn facts(of: &Prediction) -> Vec<(&'static str, String)> {
    let mut facts = vec![("reads counted", counted(of.reads as f64))];
    let known = of.recorded_hits + of.recorded_misses;
    if known > 0 {
        let missed = 100.0 * of.recorded_misses as f64 / known as f64;
        facts.push(("missed in the trace itself", format!("{missed:.2} %")));
    }
    facts.push(("keys", counted(of.keys.round())));
    facts.extend(of.least_misses.map(|misses| ("miss with any memory", share(misses))));
    facts
}

fn warnings(of: &Prediction, about: &About<'_>) -> Vec<String> {
    let mut lines = unread(about.summary);
    lines.extend(of.least_misses.and_then(|misses| mostly_new(misses.value)));
    if about.origin.sampled > 1 {
        lines.push(format!(
            "The file has one key of {}. The sizes of memory are for a server with all keys.",
            about.origin.sampled
        ));
    }
    if !about.has_times {
        lines.push(
            "The trace has no times: nothing expires, and no page moves between slab classes."
                .to_owned(),
        );
    }
    if of.fills.without_size > 0 {
        lines.push(format!(
            "{} writes of unknown size are left out: they store nothing here.",
            counted(of.fills.without_size as f64)
        ));
    }
    if of.fills.gets_without_size > 0 {
        lines.push(format!(
            "{} reads have no size, nor had their keys before: where they miss, no fill follows. So more reads miss \
             here than would.",
            counted(of.fills.gets_without_size as f64)
        ));
    }
    lines
}

fn misses(
    of: &Prediction,
    title: &'static str,
    get: fn(&Point) -> Option<Ratio>,
    notes: Vec<String>,
) -> Section {
    let sizes = of.curves.first().map_or(&[][..], |curve| &curve.points);
    let row = |(at, point): (usize, &Point)| {
        let mut row = vec![memory(point.memory_bytes as f64)];
        row.extend(of.curves.iter().map(|curve| known(get(&curve.points[at]), share)));
        row
    };
    let mut columns = vec!["memory"];
    columns.extend(of.curves.iter().map(|curve| policy_name(curve.policy)));
    let rows = sizes.iter().enumerate().map(row).collect();
    Section { title, columns, rows, notes, prose: false }
}

fn curve_notes(of: &Prediction, about: &About<'_>) -> Vec<String> {
    let points = || of.curves.iter().flat_map(|curve| &curve.points);
    let least = points().map(|point| point.part).fold(1.0, f64::min);
    let mut notes = Vec::new();
    if points().any(|point| point.misses.is_some_and(|misses| misses.error > 0.0)) {
        notes.push(format!(
            "± is one standard error: not all keys were followed, but one of {} at the fewest, and all of the hottest. \
             `--sample all` follows more, and every key for memcached and LRU.",
            number(1.0 / least)
        ));
    }
    let withheld = points().filter(|point| point.misses.is_none());
    let needed = withheld.map(|point| point.least_part).fold(0.0, f64::max);
    if needed > 0.0 {
        notes.push(why_withheld(needed));
    }
    notes.push(format!(
        "The first {} of the trace fill the caches and are not counted. A key that comes for the first time after that \
         misses at every size.",
        percent(about.warm_up)
    ));
    notes
}

/// Why figures of memcached are absent, and the options that show them.
fn why_withheld(least_part: f64) -> String {
    let remedy = match least_part {
        part if part > 1.0 => "record more keys".to_owned(),
        part if part > 0.5 => "`--sample all` shows them all".to_owned(),
        part => format!("`--sample 1/{:.0}` shows them all", (1.0 / part).floor()),
    };
    format!(
        "–: not told. In a part of the keys, slab classes have room for few items: memcached's misses can be up to 11 \
         points off, more than ± says. The part must have 100 MiB of the memory; {remedy}."
    )
}

fn rules(of: &Prediction) -> Section {
    let fills = &of.fills;
    let row = |what: &str, count: u64, here: &str| {
        vec![what.to_owned(), counted(count as f64), here.to_owned()]
    };
    let notes = [
        "With another memory other reads miss, and programs store other values. The counts belong to the keys that were \
         followed.",
        "memcached is simulated with the chunks of its slab classes (factor 1.25, pages of 1 MiB), expiry, HOT, WARM and \
         COLD, and the pages that it moves between classes; the embedded server by its own store; LRU charges the same \
         chunks without classes. Client flags, which take 4 bytes, are not in a trace. An item above 512 KiB takes two \
         of the largest chunks here; memcached takes a smaller second one. Each class that is used has a page, even \
         above the limit, as in memcached: with few pages, it takes more than `-m` says.",
        "memcached's hash table and connections need memory besides: --memory is what `memcached -m` limits, and for the \
         embedded server all of its store.",
    ];
    Section {
        title: "Which fills would have happened",
        columns: vec!["in the trace", "requests", "here"],
        rows: vec![
            row(
                "set after a get that missed, or of which nothing is known",
                fills.fills,
                "a fill: stores only where the key is not",
            ),
            row("any other set", fills.updates, "stores"),
            row(
                "get that hit, or of which nothing is known",
                fills.filled_gets,
                "if it misses here, a fill follows at once",
            ),
            row(
                "get that missed, or whose size is nowhere",
                fills.unfilled_gets,
                "if it misses here, nothing follows: its fill is in the trace, or there was none",
            ),
        ],
        notes: notes.map(str::to_owned).to_vec(),
        prose: true,
    }
}
