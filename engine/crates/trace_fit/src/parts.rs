//! Parts of the keys whose sizes or expiry times differ, and which are asked for in different ways.
//!
//! A tree: keys are divided by their size or their expiry time where the requests of both sides differ most, and each
//! side again. Keys with one size may be scanned, those with another popular: as one, the size of a key would not depend
//! on its popularity.

use std::ops::Range;

use crate::collected::{Collected, KeyFacts};
use crate::kolmogorov::distance_of;

/// Each part has at least this share of the requests, and this number of keys.
const LEAST_REQUESTS: f64 = 0.01;
const LEAST_KEYS: usize = 50;
/// Sides that are closer are alike.
const LEAST_APART: f64 = 0.1;
/// How many values of a property are tried as a border.
const BORDERS: usize = 12;
/// Of more keys, a part is compared.
const MOST_COMPARED: usize = 50_000;

/// A key with its facts.
type Key = (u64, KeyFacts);

/// The keys of the parts: their hashes; one part if all keys are alike.
pub fn parts_of(collected: &Collected, most: usize) -> Vec<Vec<u64>> {
    let mut keys: Vec<Key> = collected.keys.iter().map(|(hash, facts)| (*hash, *facts)).collect();
    keys.sort_unstable_by_key(|(hash, facts)| (facts.first, *hash));
    let all: u64 = keys.iter().map(|(_, facts)| u64::from(facts.requests)).sum();
    let least = (LEAST_REQUESTS * all as f64) as u64;
    let mut parts = vec![keys];
    while parts.len() < most {
        let divisions = parts.iter().enumerate().filter_map(|(place, part)| {
            let (border, gain) = best_border(part, least)?;
            Some((place, border, gain * part.len() as f64))
        });
        let Some((place, border, _)) = divisions.max_by(|a, b| a.2.total_cmp(&b.2)) else { break };
        let part = parts.swap_remove(place);
        let (below, above): (Vec<Key>, Vec<Key>) =
            part.into_iter().partition(|(_, facts)| border.is_below(facts));
        parts.extend([below, above]);
    }
    parts.sort_by_key(|part| part.first().map(|(_, facts)| facts.first));
    parts.into_iter().map(|part| part.into_iter().map(|(hash, _)| hash).collect()).collect()
}

/// Keys with a property up to this value are on one side.
#[derive(Clone, Copy)]
struct Border {
    property: fn(&KeyFacts) -> u32,
    most: u32,
}

impl Border {
    fn is_below(self, facts: &KeyFacts) -> bool {
        (self.property)(facts) <= self.most
    }
}

/// The border with the largest difference between its sides; `None`: no sides differ.
fn best_border(keys: &[Key], least: u64) -> Option<(Border, f64)> {
    let step = keys.len() / MOST_COMPARED + 1;
    let compared: Vec<Key> = keys.iter().step_by(step).copied().collect();
    let least = least / step as u64;
    let properties: [fn(&KeyFacts) -> u32; 2] =
        [|facts| facts.value_bytes.unwrap_or(0), |facts| facts.ttl_s.unwrap_or(0)];
    let best = properties.into_iter().filter_map(|property| {
        let mut values: Vec<u32> = compared.iter().map(|(_, facts)| property(facts)).collect();
        values.sort_unstable();
        let best_of = |borders: Vec<(usize, u32)>| {
            let gain_of = |(place, most): (usize, u32)| {
                let border = Border { property, most };
                Some((place, border, gain(&compared, border, least)?))
            };
            borders.into_iter().filter_map(gain_of).max_by(|a, b| a.2.total_cmp(&b.2))
        };
        // First at any place, then around the best one.
        let (place, ..) = best_of(borders(&values, 0..values.len()))?;
        let width = values.len() / BORDERS + 1;
        let around = place.saturating_sub(width)..(place + width).min(values.len());
        best_of(borders(&values, around)).map(|(_, border, gain)| (border, gain))
    });
    best.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Some of the different values in a range of sorted ones, and their places.
fn borders(values: &[u32], range: Range<usize>) -> Vec<(usize, u32)> {
    let place = |step: usize| range.start + range.len() * step / BORDERS;
    let mut borders: Vec<(usize, u32)> =
        (0..BORDERS).map(|step| (place(step), values[place(step)])).collect();
    borders.dedup_by_key(|(_, value)| *value);
    borders
}

/// How different the sides are, by their largest difference in a property of the requests.
fn gain(keys: &[Key], border: Border, least: u64) -> Option<f64> {
    let (below, above): (Vec<Key>, Vec<Key>) =
        keys.iter().copied().partition(|(_, facts)| border.is_below(facts));
    let requests =
        |side: &[Key]| side.iter().map(|(_, facts)| u64::from(facts.requests)).sum::<u64>();
    let is_small = |side: &[Key]| side.len() < LEAST_KEYS || requests(side) < least;
    if is_small(&below) || is_small(&above) {
        return None;
    }
    let told: [fn(&KeyFacts) -> u32; 3] = [
        |facts| facts.requests,
        |facts| u32::try_from(facts.first).unwrap_or(u32::MAX),
        |facts| u32::try_from(facts.last - facts.first).unwrap_or(u32::MAX),
    ];
    let apart = told.map(|of| {
        let all = |side: &[Key]| side.iter().map(|(_, facts)| of(facts)).collect::<Vec<u32>>();
        distance_of(&mut all(&below), &mut all(&above)).unwrap_or(0.0)
    });
    let apart = apart.into_iter().fold(0.0, f64::max);
    let share = below.len() as f64 / keys.len() as f64;
    (apart >= LEAST_APART).then(|| apart * (share * (1.0 - share)).sqrt())
}
