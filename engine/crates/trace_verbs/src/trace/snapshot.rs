//! `trace predict` of a snapshot: for how long its items lie unread, and what less memory gives up.

use cachemark_miss_ratio::{Amount, Held, HeldItems};
use cachemark_trace::file::{Origin, Summary};
use cachemark_trace::{ReadTrace, SNAPSHOT_SECONDS};
use serde::Serialize;

use super::told::{Section, Told, counted, memory, percent, whole_time};

#[derive(Serialize)]
pub(super) struct Snapshot {
    origin: Origin,
    summary: Summary,
    held: Held,
}

/// The answers of a snapshot in this file, for some sizes of memory. An error names the file.
pub(super) fn told(
    path: &str,
    read: ReadTrace,
    items: HeldItems,
    sizes: &[u64],
) -> Result<Told<Snapshot>, String> {
    let ReadTrace { origin, summary, .. } = read;
    let Some(&snapshot_s) = summary.server.get(SNAPSHOT_SECONDS) else {
        return Err(format!("{path}: it has items, but is no snapshot of `cachemark record`"));
    };
    let held = items.told(snapshot_s, origin.sampled, sizes);
    let limit = summary.server.get("limit_maxbytes");
    let mut facts = vec![
        ("items", counted(held.items.items)),
        ("their memory", memory(held.items.bytes)),
        ("without expiry", share(held.without_expiry, &held)),
    ];
    facts.extend(limit.map(|limit| ("limit of the server", memory(*limit as f64))));
    let mut warnings: Vec<String> = summary
        .left_out
        .iter()
        .map(|(reason, count)| format!("Not counted: {count} items {reason}."))
        .collect();
    if origin.sampled > 1 {
        warnings.push(format!(
            "The file has one key of {}. All figures are for all keys.",
            origin.sampled
        ));
    }
    Ok(Told {
        about: "What a server's memory holds",
        title: format!("{path}: {}", headline(&held)),
        facts,
        warnings,
        sections: vec![idle(&held), given_up(&held)],
        figures: Snapshot { origin, summary, held },
    })
}

fn headline(held: &Held) -> String {
    let never = share(held.never_read, held);
    let mut text =
        format!("{never} of the memory holds items that no client has read since they were stored");
    let is_half = |bytes: f64| bytes >= held.items.bytes / 2.0;
    if let Some(row) = held.idle.iter().rfind(|row| is_half(row.at_most.bytes)) {
        let most = share(row.at_most, held);
        text += &format!("; at most {most} was idle for {}", whole_time(row.idle_s));
    }
    text
}

fn idle(held: &Held) -> Section {
    let rows = held.idle.iter().map(|row| {
        vec![whole_time(row.idle_s), amount(row.at_least, held), amount(row.at_most, held)]
    });
    let note = "At least: items that were never read, and stored so long ago. At most: all items whose last access is so \
                long ago as far as memcached noted it. It does not note the first read of an item, nor reads of an item \
                that it holds for active.";
    Section {
        title: "Memory that lies unread",
        columns: vec!["not read for", "at least", "at most"],
        rows: rows.collect(),
        notes: vec![note.to_owned()],
        prose: false,
    }
}

fn given_up(held: &Held) -> Section {
    let rows = held.given_up.iter().map(|row| {
        let idle = whole_time(row.idle_s);
        vec![
            memory(row.memory_bytes as f64),
            amount(row.items, held),
            amount(row.never_read, held),
            if row.items.items > 0.0 { format!("≥ {idle}") } else { "–".to_owned() },
        ]
    });
    let notes = [
        "If the items go first whose last noted access is longest ago, as in one list of all items. Each takes its slab \
         chunk; pages that are partly free are not counted.",
        "How many reads these items would get is not in a snapshot, so no misses are known. If keys stay as popular as \
         they are, each read of one of these items would miss: `record --duration 10m`, then `predict`, counts these \
         reads.",
    ];
    Section {
        title: "What less memory gives up",
        columns: vec!["memory", "given up", "of that never read", "noted access"],
        rows: rows.collect(),
        notes: notes.map(str::to_owned).to_vec(),
        prose: false,
    }
}

fn amount(of: Amount, held: &Held) -> String {
    format!("{} ({} items)", share(of, held), counted(of.items))
}

/// The share of the memory of all items.
fn share(of: Amount, held: &Held) -> String {
    percent(of.bytes / held.items.bytes)
}
