//! A second, larger part of the keys, of which only the times between uses are counted (double sampling; Cochran,
//! Sampling Techniques, 12).
//!
//! The times between uses alone tell about how many reads miss: what is used between two uses of a key is, on average,
//! what has not been used for as long (average eviction time; Hu et al. 2016). In both parts: the difference shows by
//! how much the smaller part, whose keys are followed, misses more or less by chance.

use std::hint::black_box;

use crate::choice::{Choice, ONE, Stand};
use crate::hottest::Population;
use crate::request::{NO_SIZE, Operation, Request};
use crate::slabs::{SlabClasses, item_bytes};
use crate::tally::{ByTimes, GROUPS, Groups, group_of};

const PLACES: usize = 1 << 17;
/// About this number of keys is in the larger part, so that half of the places stay free.
const KEYS: f64 = (PLACES / 2) as f64;
/// A search that finds neither the key nor a free place after this number of places gives up.
const TRIES: usize = 64;
/// A larger part that has not this number of times more keys corrects little.
const LEAST_TIMES: f64 = 1.5;
/// What a place has of an item's bytes: their eighth.
const UNIT_BYTES: u32 = 8;

/// Classes of times for each power of two.
const STEPS: usize = 16;
const CLASSES: usize = (u32::BITS - STEPS.ilog2()) as usize * STEPS + STEPS;
/// The class of a key's first use.
const FIRST_USE: usize = CLASSES;

fn class_of(time: u32) -> usize {
    let bits = (u32::BITS - time.leading_zeros()).saturating_sub(STEPS.ilog2() + 1);
    bits as usize * STEPS + (time >> bits) as usize
}

/// The shortest time of a class.
fn begin_of(class: usize) -> f64 {
    let bits = (class / STEPS).saturating_sub(1);
    (class - bits * STEPS) as f64 * 2f64.powi(bits as i32)
}

/// The uses of a part's keys, by the time since the use before.
struct Uses {
    /// Of items, each with its weight.
    bytes: Vec<u64>,
    /// Counted reads, by the group of the key.
    reads: Vec<[u64; GROUPS]>,
    keys: [u64; GROUPS],
}

impl Uses {
    fn new() -> Uses {
        Uses {
            bytes: vec![0; CLASSES + 1],
            reads: vec![[0; GROUPS]; CLASSES + 1],
            keys: [0; GROUPS],
        }
    }

    #[inline]
    fn add(&mut self, class: usize, stand: Stand, note: &Note, bytes: u32) {
        let weight = u64::from(stand.weight);
        self.bytes[class] += weight * u64::from(bytes);
        let group = group_of(note.hash);
        self.reads[class][group] += weight * u64::from(note.counts);
        self.keys[group] += weight * u64::from(class == FIRST_USE);
    }

    fn all_reads(&self) -> Groups {
        let sum = |group| self.reads.iter().map(|reads: &[u64; GROUPS]| reads[group] as f64).sum();
        std::array::from_fn(sum)
    }

    /// Misses with these sizes in bytes, the smallest first; `requests` is what times count.
    fn misses(&self, sizes: &[u64], requests: u64) -> Vec<Groups> {
        let mut beyond = vec![[0.0; GROUPS]; CLASSES + 2];
        let mut unused = vec![0.0; CLASSES + 2];
        for class in (0..=FIRST_USE).rev() {
            let reads = self.reads[class];
            beyond[class] =
                std::array::from_fn(|group| beyond[class + 1][group] + reads[group] as f64);
            let bytes = self.bytes[class] as f64 / f64::from(ONE);
            unused[class] = unused[class + 1] + bytes / requests as f64;
        }
        let (mut class, mut used) = (0, 0.0);
        let missed = |size: &u64| {
            loop {
                if class == FIRST_USE {
                    return beyond[FIRST_USE];
                }
                let time = begin_of(class + 1) - begin_of(class);
                let more = time * (unused[class] + unused[class + 1]) / 2.0;
                let part = (*size as f64 - used) / more;
                if part < 1.0 {
                    let between = |group| {
                        let (begin, end): (f64, f64) =
                            (beyond[class][group], beyond[class + 1][group]);
                        begin + part * (end - begin)
                    };
                    return std::array::from_fn(between);
                }
                (class, used) = (class + 1, used + more);
            }
        };
        sizes.iter().map(missed).collect()
    }
}

/// What is known of a key.
#[derive(Clone, Copy, Default)]
struct Last {
    request: u32,
    /// Of its hash; 0 at a free place.
    mark: u16,
    units: u16,
}

/// A request that waits for a batch.
#[derive(Clone, Copy)]
struct Note {
    hash: u64,
    /// Of the request in the trace.
    number: u32,
    value_bytes: u32,
    key_bytes: u8,
    counts: bool,
}

/// Counts the times between uses of keys that are not hot.
pub(crate) struct Reuse {
    larger: Choice,
    last: Vec<Last>,
    waiting: Vec<Note>,
    slabs: SlabClasses,
    of_larger: Uses,
    of_smaller: Uses,
    /// Always in the memory.
    hot_bytes: u64,
}

impl Reuse {
    const BATCH: usize = 64;

    /// `None` if this part of the population's keys needs no larger one.
    pub fn new(part: f64, population: &Population, lasting_keys: usize) -> Option<Reuse> {
        let larger = (KEYS / population.keys).min(1.0);
        let hot = population.hot.iter().skip(lasting_keys);
        (part * LEAST_TIMES <= larger).then(|| Reuse {
            larger: Choice::new(larger, &[], &population.requests_at),
            last: vec![Last::default(); PLACES],
            waiting: Vec::with_capacity(Reuse::BATCH),
            slabs: SlabClasses::default(),
            of_larger: Uses::new(),
            of_smaller: Uses::new(),
            hot_bytes: hot.map(|key| u64::from(key.charged_bytes)).sum(),
        })
    }

    /// Whether a key that is not hot is in the larger part.
    #[inline]
    pub fn takes(&self, hash: u64) -> bool {
        self.larger.takes(hash)
    }

    /// A request of a key that is in the larger part, by its number; `counts` if it is a read that counts.
    #[inline]
    pub fn note(&mut self, request: &Request, number: u64, counts: bool, smaller: &Choice) {
        let &Request { hash, key_bytes, value_bytes, operation, .. } = request;
        let counts = counts && operation == Operation::Get;
        self.waiting.push(Note { hash, number: number as u32, key_bytes, value_bytes, counts });
        if self.waiting.len() == Reuse::BATCH {
            self.count_waiting(smaller);
        }
    }

    #[inline(never)]
    fn count_waiting(&mut self, smaller: &Choice) {
        // All places at once: one after the other, each would wait for the memory.
        let near = |note: &Note| u32::from(self.last[place_of(note.hash)].mark);
        black_box(self.waiting.iter().map(near).fold(0, u32::wrapping_add));
        for at in 0..self.waiting.len() {
            self.count(self.waiting[at], smaller);
        }
        self.waiting.clear();
    }

    fn count(&mut self, note: Note, smaller: &Choice) {
        let Some(last) = find(&mut self.last, note.hash) else { return };
        let class = match last.request {
            0 => FIRST_USE,
            before => class_of(note.number.wrapping_sub(before)),
        };
        last.request = note.number.max(1);
        if note.value_bytes != NO_SIZE {
            let charged = self.slabs.charged_bytes(item_bytes(note.key_bytes, note.value_bytes));
            last.units = (charged.unwrap_or(0) / UNIT_BYTES).min(u32::from(u16::MAX)) as u16;
        }
        let bytes = u32::from(last.units) * UNIT_BYTES;
        self.of_larger.add(class, self.larger.stand(note.hash), &note, bytes);
        if smaller.takes(note.hash) {
            self.of_smaller.add(class, smaller.stand(note.hash), &note, bytes);
        }
    }

    /// For sizes in bytes that have no room for keys that last in all of them.
    pub fn by_times(&mut self, sizes: &[u64], requests: u64, smaller: &Choice) -> Vec<ByTimes> {
        self.count_waiting(smaller);
        let room = |size: &u64| size.saturating_sub(self.hot_bytes);
        let sizes: Vec<u64> = sizes.iter().map(room).collect();
        let reads = self.of_larger.all_reads();
        let misses = self.of_larger.misses(&sizes, requests).into_iter();
        let both = misses.zip(self.of_smaller.misses(&sizes, requests));
        let [keys, smaller_keys] =
            [&self.of_larger, &self.of_smaller].map(|uses| uses.keys.map(|keys| keys as f64));
        let of = |(misses, smaller_misses)| ByTimes {
            reads,
            keys,
            misses,
            smaller_keys,
            smaller_misses,
        };
        both.map(of).collect()
    }
}

fn place_of(hash: u64) -> usize {
    // The highest bits choose keys.
    (hash >> 24) as usize % PLACES
}

/// The place of a key, or a free one for it. Two keys with one mark are seen as one, in both parts.
fn find(places: &mut [Last], hash: u64) -> Option<&mut Last> {
    let (mark, first) = ((hash >> 8) as u16 | 1, place_of(hash));
    let place = (first..first + TRIES).map(|place| place % PLACES).find(|place| {
        let of = places[*place].mark;
        of == mark || of == 0
    })?;
    places[place].mark = mark;
    Some(&mut places[place])
}
