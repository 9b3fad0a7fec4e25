//! The order of a trace: how many other keys were used since the last use of a key.
//!
//! At the first use of a key, all that is known is that its distance is not below the number of keys so far: most keys
//! of a cold beginning are not new to the traffic. The estimate of Kaplan and Meier (1958) takes such uses into
//! account; what it leaves over are keys that are new.

use std::collections::HashMap;

use cachemark_tape::Recency;
use foldhash::fast::FixedState;

use crate::collected::Collected;
use crate::value_table::value_table;

/// Points of an estimate that make its table.
const POINTS: u32 = 1 << 14;

/// Uses by their distance, and first uses by the number of keys before them.
#[derive(Default)]
struct Uses {
    known: Vec<u32>,
    first: Vec<u32>,
}

/// The distribution of keys with the distances of a trace, as experiments have it; `None`: no key is used again.
pub fn recency(collected: &Collected) -> Option<String> {
    let mut order = Recency::new(collected.keys.len() as u32);
    let mut numbers: HashMap<u64, u32, FixedState> = HashMap::default();
    let (mut reads, mut writes) = (Uses::default(), Uses::default());
    for kept in collected.played() {
        let next = numbers.len() as u32;
        let key = *numbers.entry(kept.request.hash).or_insert(next);
        let uses = if kept.stores() { &mut writes } else { &mut reads };
        match order.touch(key) {
            Some(distance) => uses.known.push(distance),
            None => uses.first.push(next),
        }
    }
    let reads = reads.law()?;
    let writes = writes.law().unwrap_or_else(|| reads.clone());
    Some(format!("recency:{reads}/{writes}"))
}

impl Uses {
    /// The share of new keys and the distances of the others; `None` if there are no others.
    fn law(mut self) -> Option<String> {
        self.known.sort_unstable();
        self.first.sort_unstable();
        let mut points = Vec::with_capacity(POINTS as usize);
        let (mut first, mut left) = (0, 1.0);
        for (place, same) in groups(&self.known) {
            // A first use behind `count` keys is farther than any of them.
            first += self.first[first..].partition_point(|count| *count <= same[0]);
            let may_be = self.known.len() - place + self.first.len() - first;
            left *= 1.0 - same.len() as f64 / may_be as f64;
            let passed = (f64::from(POINTS) * (1.0 - left)).round() as usize;
            points.resize(passed.max(points.len()), same[0]);
        }
        let new = 1.0 - points.len() as f64 / f64::from(POINTS);
        Some(format!("{:.4}:{}", new, value_table(points)?))
    }
}

/// Equal numbers, and where they begin.
fn groups(sorted: &[u32]) -> impl Iterator<Item = (usize, &[u32])> {
    sorted.chunk_by(|a, b| a == b).scan(0, |place, same| {
        let begin = *place;
        *place += same.len();
        Some((begin, same))
    })
}
