//! The servers that a trace needs, in words.

use cachemark_fleet::{Count, Limit, Loss, LossCase, Played, Spread};
use cachemark_miss_ratio::Ratio;

use super::measured_told;
use super::planned_fleet::PlannedFleet;
use super::told::{
    Section, Told, count_of, counted, known, memory, mostly_new, number, percent, seconds, unread,
};

const LIMITS: [(Limit, &str, &str); 4] = [
    (Limit::Memory, "by memory", "the memory for the hit ratio"),
    (Limit::Rate, "by rate", "the rate"),
    (Limit::Network, "by network", "the network"),
    (Limit::Loss, "one lost", "the rate when one server is lost"),
];

/// The words for a trace in this file.
pub(super) fn told(path: &str, figures: PlannedFleet) -> Told<PlannedFleet> {
    let of = &figures;
    let mut sections = vec![needed(of)];
    sections.extend(Some(one_server(of)).filter(|section| !section.rows.is_empty()));
    sections.extend(of.rates.as_ref().map(measured_told::section));
    if let Some(played) = &of.played {
        sections.extend(played.loss.as_ref().map(|loss| lost(loss, of)));
        sections.push(formulas(played, of));
    }
    sections.push(assumptions(of));
    Told {
        about: "How many servers it takes",
        title: format!("{path}: {}", headline(of)),
        facts: vec![
            ("requests in the trace", counted(of.requests as f64)),
            ("keys", counted(of.keys)),
            ("highest rate", rate(of.demand.requests_per_s)),
            ("bytes for a request", format!("{:.0} B", of.demand.bytes_per_request)),
        ],
        warnings: warnings(of),
        sections,
        figures,
    }
}

fn rate(value: f64) -> String {
    format!("{}/s", number(value))
}

fn headline(of: &PlannedFleet) -> String {
    let wanted = format!("{} requests/s", number(of.demand.requests_per_s));
    let Some((count, servers)) = of.chosen().and_then(|count| Some((count, count.servers?))) else {
        return match beyond_reach(of) {
            None => format!("no number of these servers is known to be enough for {wanted}"),
            Some((goal, most)) => format!(
                "no number of servers reaches hits of {}: with all keys in memory {} hit",
                percent(goal),
                percent(most)
            ),
        };
    };
    let kind = format!("{} ({})", count.kind, memory(count.memory_bytes as f64));
    let fleet = format!("{} of {kind}", count_of(servers, "server"));
    match count.needed {
        None => format!("{fleet} for {wanted}: no number of them is known to be enough"),
        Some(needed) if servers < needed => {
            format!("{fleet} for {wanted} are too few: {needed} are needed")
        }
        Some(needed) => {
            let decides = count.limits.iter().find(|each| each.servers == Some(needed));
            let name = decides.and_then(|each| LIMITS.iter().find(|row| row.0 == each.limit));
            let enough =
                if servers > needed { format!("; {needed} are needed") } else { String::new() };
            format!("{fleet} for {wanted}{enough}; {} decides", name.map_or("", |row| row.2))
        }
    }
}

/// A goal that no memory reaches, and the share of reads that hit with all of it.
fn beyond_reach(of: &PlannedFleet) -> Option<(f64, f64)> {
    let most = 1.0 - of.curve.last().map_or(1.0, |(_, misses)| *misses);
    of.demand.hit_ratio.filter(|goal| *goal > most).map(|goal| (goal, most))
}

fn warnings(of: &PlannedFleet) -> Vec<String> {
    let mut lines = unread(&of.summary);
    lines.extend(of.curve.last().and_then(|(_, misses)| mostly_new(*misses)));
    if let Some((goal, most)) = beyond_reach(of) {
        lines.push(format!(
            "No memory reaches hits of {}: with all of it {} hit. New keys and expired items always miss. For a plan by \
             the other limits, leave hit_ratio out or ask for less.",
            percent(goal),
            percent(most)
        ));
    }
    for count in &of.counts {
        if count.connections_fit == Some(false) {
            lines.push(format!(
                "{}: {} connections to each server are more than it takes. More servers do not help: each client \
                 connects to all of them.",
                count.kind, of.demand.connections
            ));
        }
        if let Some(most) = count.hot_key_rate.filter(|most| *most < of.demand.requests_per_s) {
            lines.push(format!(
                "{}: the hottest key alone is too much for a server. No number of them holds more than {} requests/s: \
                 keep copies of that key, or cache it in the clients.",
                count.kind,
                number(most)
            ));
        }
    }
    if of.played.as_ref().is_some_and(|played| played.servers > 1 && played.loss.is_none()) {
        lines.push("The trace has no times, so no server is lost.".to_owned());
    }
    lines
}

fn needed(of: &PlannedFleet) -> Section {
    let servers = |count: &Count, limit: Limit| {
        count.limits.iter().find(|each| each.limit == limit).map(|each| each.servers)
    };
    let is_known = |limit: Limit| of.counts.iter().any(|count| servers(count, limit).is_some());
    let limits: Vec<_> = LIMITS.into_iter().filter(|row| is_known(row.0)).collect();
    let whole = |count: Option<usize>| known(count, |count| count.to_string());
    let row = |count: &Count| {
        let mut row = vec![count.kind.clone(), memory(count.memory_bytes as f64)];
        row.extend(limits.iter().map(|limit| whole(servers(count, limit.0).flatten())));
        row.extend([whole(count.needed), known(count.price, |price| format!("{price:.2}"))]);
        row
    };
    let mut columns = vec!["kind", "memory"];
    columns.extend(limits.iter().map(|limit| limit.1));
    columns.extend(["servers", "price"]);
    let note = "Each column is the smallest number that this limit allows, in the worst of the draws of keys; servers is \
                the largest of them. –: no limit is known, or 1,000 are too few.";
    Section {
        title: "Servers that are needed",
        columns,
        rows: of.counts.iter().map(row).collect(),
        notes: vec![note.to_owned()],
        prose: false,
    }
}

fn one_server(of: &PlannedFleet) -> Section {
    let row = |count: &Count| {
        Some(vec![
            format!("{} × {}", count.servers?, count.kind),
            known(count.fullest, largest),
            known(count.hottest, largest),
            known(count.utilisation, percent),
            known(count.mean_wait_s, seconds),
            known(count.p99_wait_s, seconds),
            known(count.hot_key_rate, rate),
        ])
    };
    let note = "Fullest, hottest: memory and requests of that server, as a multiple of the mean; the median, and the \
                worst in brackets. Waits for a thread of the hottest server, in the worst draw. Hot key: the highest rate \
                of any fleet of this kind, as one server has that key.";
    let varied = "p99 wait –: service times that vary more than exponential ones leave it open while threads are busy for less \
                  than 30 %.";
    let is_open =
        of.counts.iter().any(|count| count.mean_wait_s.is_some() && count.p99_wait_s.is_none());
    let notes = [Some(note), is_open.then_some(varied)];
    Section {
        title: "The fullest and the hottest server",
        columns: vec![
            "fleet",
            "fullest",
            "hottest",
            "threads busy",
            "mean wait",
            "p99 wait",
            "hot key",
        ],
        rows: of.counts.iter().filter_map(row).collect(),
        notes: notes.into_iter().flatten().map(str::to_owned).collect(),
        prose: false,
    }
}

fn largest(of: Spread) -> String {
    let (median, worst) = (format!("{:.2}", of.median), format!("{:.2}", of.worst));
    if median == worst { median } else { format!("{median} ({worst})") }
}

fn lost(loss: &Loss, of: &PlannedFleet) -> Section {
    // The misses of the trace's own minute, as many times as its rate is to grow.
    let growth = of.demand.trace_rate.map_or(1.0, |trace| of.demand.requests_per_s / trace);
    let rows = loss.cases.iter().map(|(case, period)| {
        let name = match case {
            LossCase::Nothing => "no server is lost",
            LossCase::Failing => "requests to it fail",
            LossCase::Dropped => "clients take it out of their list",
            LossCase::Gutter => "clients ask a gutter pool",
        };
        vec![
            name.to_owned(),
            hits(period.misses),
            rate(period.misses.value * loss.reads_per_s * growth),
            format!("{:.2}", period.hottest),
        ]
    });
    let mut notes = vec![format!(
        "The hottest server is lost, with {} of the requests, in the middle of the part of the trace that is counted. The \
         same requests of {} s after that are played in each way. Reads that miss go to what is behind the cache.",
        percent(loss.part),
        loss.seconds
    )];
    if of.gutter_servers > 0 {
        notes.push(format!(
            "The gutter pool is {} more. No item stays there for longer than {} s.",
            count_of(of.gutter_servers, "server"),
            of.gutter_ttl_s
        ));
    }
    Section {
        title: "The minute after a server is lost",
        columns: vec!["behaviour of clients", "hits", "reads that miss", "hottest"],
        rows: rows.collect(),
        notes,
        prose: false,
    }
}

fn formulas(played: &Played, of: &PlannedFleet) -> Section {
    let chosen = of.chosen();
    let formula = chosen.and_then(|count| count.misses);
    let hottest = chosen.and_then(|count| count.hottest);
    let most = played.keys_of_server.iter().max().copied().unwrap_or(0);
    let fewest = played.keys_of_server.iter().min().copied().unwrap_or(0);
    let row = |of: &str, formula: String, played: String| vec![of.to_owned(), formula, played];
    let rows = vec![
        row(
            "reads that hit",
            known(formula, |misses| format!("{:.2} %", 100.0 * (1.0 - misses))),
            hits(played.before.misses),
        ),
        row("hottest server", known(hottest, largest), format!("{:.2}", played.before.hottest)),
        row(
            "most and fewest keys of a server",
            known(None, |()| String::new()),
            format!("{most}, {fewest}"),
        ),
    ];
    let policy = if played.is_memcached { "memcached's policy" } else { "LRU" };
    let followed = match played.part {
        1.0 => "all keys".to_owned(),
        part => format!("{} of the keys", percent(part)),
    };
    let note = format!(
        "The trace was played through {} with {policy}, with {followed}, until the loss. The formula has the curve of \
         LRU, and the worst draw.",
        count_of(played.servers, "server")
    );
    Section {
        title: "The formulas beside a play of the trace",
        columns: vec!["", "formula", "played"],
        rows,
        notes: vec![note],
        prose: false,
    }
}

fn hits(misses: Ratio) -> String {
    let value = format!("{:.2} %", 100.0 * (1.0 - misses.value));
    if misses.error > 0.0 { format!("{value} ±{:.2}", 100.0 * misses.error) } else { value }
}

fn assumptions(of: &PlannedFleet) -> Section {
    let demand = &of.demand;
    let keys = if of.are_real {
        "the trace's own keys, on the addresses of the file"
    } else {
        "20 draws of other keys with the same requests: the trace's keys are a hash, or the file has no addresses"
    };
    let rows = [
        (
            "highest rate",
            format!(
                "{}: the busiest 10 s of the trace have {}, growth is {}, and peak_rate replaces the trace's",
                rate(demand.requests_per_s),
                known(demand.trace_rate, rate),
                demand.growth
            ),
        ),
        (
            "rate, network",
            format!(
                "at most {} of them is used as long as no server is lost; with one lost, all of the rate",
                percent(demand.used_part)
            ),
        ),
        (
            "hit ratio",
            match demand.hit_ratio {
                None => "no goal".to_owned(),
                Some(goal) => format!(
                    "at least {}, after the first {} of the trace, with the fills that predict assumes",
                    percent(goal),
                    percent(of.warm_up)
                ),
            },
        ),
        ("keys", keys.to_owned()),
        ("ring", format!("{}; all servers have the same weight", of.ring.name())),
        (
            "memory",
            "a server with a part of the keys misses as one with all keys and as many times the memory; LRU, each item \
             with its slab chunk"
                .to_owned(),
        ),
        (
            "waits",
            "requests come at random (Poisson), connections are spread evenly on threads, each thread is a queue of its \
             own (M/G/1); the tail is that of service times by a gamma law"
                .to_owned(),
        ),
        (
            "one lost",
            "the hottest server, at once and for the whole minute; clients notice at once".to_owned(),
        ),
        (
            "network",
            "keys and values, 8 B for a command and 24 B for a reply with a value; no packet headers".to_owned(),
        ),
    ];
    Section {
        title: "Assumptions",
        columns: vec!["of", "assumption"],
        rows: rows.into_iter().map(|(of, text)| vec![of.to_owned(), text]).collect(),
        notes: Vec::new(),
        prose: true,
    }
}
