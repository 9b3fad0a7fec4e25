//! memcached's own policy: slab classes, a segmented LRU in each (HOT, WARM, COLD), and pages that move between classes.
//!
//! As in memcached 1.5 and later with its default options; [`Release`] has what changed since. A new item is in HOT. An item is active from its second hit
//! on. A maintainer moves the oldest of HOT and WARM when they have more than 20 % and 40 % of their class, or are older
//! than 0.2 and 2 times the oldest of COLD: to COLD, or to WARM if it is active. An active item of COLD goes to WARM when
//! it is hit. Only COLD is evicted from. Once a second a page moves from the class with the oldest items to the one with
//! the youngest that evicts, if their ages differ by more than 20 %. An item that has expired stays until it is asked for,
//! is the oldest of its list, or the crawler comes.

mod automove;
mod chunks;
mod crawl;
mod crawler;
mod pages;
mod second;

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;

use crate::deadlines::{Deadlines, NEVER_S, deadline_s};
use crate::fills::{Fill, Step, Task};
use crate::list::{END, Links, List};
use crate::slabs::{SlabClasses, item_bytes};
use crawl::Crawl;
use pages::{Chunks, NO_CHUNK, NO_ITEM, Pages};
pub use second::Release;
use second::{MOST_SECONDS, Second};

const HOT: usize = 0;
const WARM: usize = 1;
const COLD: usize = 2;
const HOT_PERCENT: u64 = 20;
const WARM_PERCENT: u64 = 40;
const HOT_AGE: f64 = 0.2;
const WARM_AGE: f64 = 2.0;
const PAGE_BYTES: f64 = (1 << 20) as f64;
/// The maintainer's most moves in a row.
const MOST_MOVES: usize = 500;
/// Of the tail that the maintainer looks at.
const TRIES: usize = 5;

#[derive(Clone, Copy)]
struct Item {
    hash: u64,
    until_s: u32,
    /// When it was stored or bumped.
    time_s: u32,
    chunks: Chunks,
    class: u8,
    lru: u8,
    fetched: bool,
    active: bool,
    has_look: bool,
}

#[derive(Clone, Default)]
struct Class {
    chunks_of_page: u32,
    /// The first has been there for longest.
    pages: VecDeque<u32>,
    /// Chunks, of which the last is taken first.
    free: Vec<u32>,
    lists: [List; 3],
    counts: [u64; 3],
    evicted: u64,
    history: [Second; MOST_SECONDS],
    evicted_before: u64,
    pages_before: usize,
    crawl: Crawl,
}

/// A memcached with some memory.
#[derive(Clone)]
pub struct Memcached {
    release: Release,
    /// The part of the keys that is followed: so much of a page is there for them.
    part: f64,
    pages: Pages,
    slabs: SlabClasses,
    classes: Vec<Class>,
    numbers: HashMap<u64, u32, FixedState>,
    items: Vec<Item>,
    links: Vec<Links>,
    free: Vec<u32>,
    deadlines: Deadlines,
    second: u32,
    seconds: usize,
}

impl Memcached {
    /// A memcached with `memory_bytes` (`-m`), of which only this part of the keys is followed.
    pub fn new(release: Release, memory_bytes: u64, part: f64) -> Memcached {
        let slabs = SlabClasses::default();
        let class = |class: &crate::slabs::SlabClass| Class {
            chunks_of_page: class.chunks_of_page,
            ..Class::default()
        };
        Memcached {
            release,
            part,
            pages: Pages::new((memory_bytes as f64 / PAGE_BYTES) as u32),
            classes: slabs.all().iter().map(class).collect(),
            slabs,
            numbers: HashMap::default(),
            items: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            deadlines: Deadlines::default(),
            second: 0,
            seconds: 0,
        }
    }

    /// Used chunks of each class now, and its pages.
    pub fn classes(&self) -> Vec<(u64, u32)> {
        let of = |class: &Class| {
            (self.pages.chunks(&class.pages) - class.free.len() as u64, class.pages.len() as u32)
        };
        self.classes.iter().map(of).collect()
    }

    /// Play a step. `Some(hit)` for a get.
    pub fn play(&mut self, step: &Step) -> Option<bool> {
        self.pass_time(step.at_s);
        let found = self.found(step.hash);
        match step.task {
            Task::Get(fill) => {
                match (found, fill) {
                    (Some(item), _) => self.bump(item),
                    (None, Some(fill)) => self.store(step, None, fill),
                    (None, None) => {}
                }
                return Some(found.is_some());
            }
            Task::Set(fill) => self.store(step, found, fill),
            Task::Add(fill) if found.is_none() => self.store(step, None, fill),
            Task::Replace(fill) if found.is_some() => self.store(step, found, fill),
            Task::Add(_) | Task::Replace(_) => {}
            Task::Delete => found.map_or((), |item| self.unlink(item)),
            Task::Touch(ttl_s) => {
                if let Some(item) = found {
                    self.expire_at(item, deadline_s(step.at_s, ttl_s));
                    self.bump(item);
                }
            }
            Task::Use => found.map_or((), |item| self.bump(item)),
        }
        None
    }

    /// The item of a key. One that has expired is removed.
    fn found(&mut self, hash: u64) -> Option<u32> {
        let number = *self.numbers.get(&hash)?;
        if self.has_expired(number) {
            self.unlink(number);
            return None;
        }
        Some(number)
    }

    fn has_expired(&self, number: u32) -> bool {
        self.items[number as usize].until_s <= self.second
    }

    fn store(&mut self, step: &Step, replaced: Option<u32>, fill: Fill) {
        let bytes = item_bytes(step.key_bytes, fill.value_bytes);
        let Some(class) = self.slabs.class_of(bytes) else {
            return replaced.map_or((), |item| self.unlink(item));
        };
        // The new item gets its memory before the old one gives up its own.
        let chunks = self.take_chunks(class, self.slabs.chunks_of(bytes));
        if let Some(item) = self.numbers.get(&step.hash).copied() {
            self.unlink(item);
        }
        let Some(chunks) = chunks else { return };
        let item = self.new_item(Item {
            hash: step.hash,
            until_s: NEVER_S,
            time_s: step.at_s,
            chunks,
            class: class as u8,
            lru: HOT as u8,
            fetched: false,
            active: false,
            has_look: false,
        });
        self.pages.hold(chunks, item);
        self.numbers.insert(step.hash, item);
        self.link(item, HOT);
        self.expire_at(item, deadline_s(step.at_s, fill.ttl_s));
        self.maintain(class);
    }

    fn new_item(&mut self, item: Item) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.items[number as usize] = item;
                number
            }
            None => {
                self.items.push(item);
                self.links.push(Links::NONE);
                self.items.len() as u32 - 1
            }
        }
    }

    /// A hit: the first marks an item as fetched, the second as active, which takes it out of COLD.
    fn bump(&mut self, number: u32) {
        let now_s = self.second;
        let item = &mut self.items[number as usize];
        if item.active {
            return;
        }
        if !item.fetched {
            item.fetched = true;
            return;
        }
        item.time_s = now_s;
        if item.lru as usize != COLD {
            item.active = true;
            return;
        }
        let class = item.class as usize;
        self.take(number);
        self.link(number, WARM);
        self.maintain(class);
    }

    /// The maintainer's work on a class, as it does some milliseconds after a change.
    fn maintain(&mut self, class: usize) {
        for _ in 0..MOST_MOVES {
            let of = &self.classes[class];
            let cold_age = match of.lists[COLD].oldest {
                END => 0.0,
                oldest => f64::from(self.second - self.items[oldest as usize].time_s),
            };
            let total: u64 = of.counts.iter().sum();
            let (hot, warm) = (total * HOT_PERCENT / 100, total * WARM_PERCENT / 100);
            let moved = self.pull(class, HOT, hot, (cold_age * HOT_AGE) as u32)
                || self.pull(class, WARM, warm, (cold_age * WARM_AGE) as u32);
            if !moved {
                return;
            }
        }
    }

    /// Look at the oldest items of HOT or WARM: active ones become the newest of WARM, one of too many or too old goes
    /// to COLD. Whether any moved.
    fn pull(&mut self, class: usize, lru: usize, most: u64, most_age_s: u32) -> bool {
        let mut moved = false;
        for _ in 0..TRIES {
            let oldest = self.classes[class].lists[lru].oldest;
            if oldest == END {
                break;
            }
            if self.has_expired(oldest) {
                self.unlink(oldest);
                moved = true;
                continue;
            }
            let item = &mut self.items[oldest as usize];
            let age_s = self.second - item.time_s;
            if std::mem::take(&mut item.active) {
                self.take(oldest);
                self.link(oldest, WARM);
                moved = true;
                if lru == HOT {
                    break;
                }
            } else if self.classes[class].counts[lru] > most || age_s > most_age_s {
                self.take(oldest);
                self.link(oldest, COLD);
                return true;
            } else {
                break;
            }
        }
        moved
    }

    fn oldest(&self, class: usize, lru: usize) -> Option<u32> {
        let oldest = self.classes[class].lists[lru].oldest;
        (oldest != END).then_some(oldest)
    }

    fn link(&mut self, number: u32, lru: usize) {
        let item = &mut self.items[number as usize];
        item.lru = lru as u8;
        let class = &mut self.classes[item.class as usize];
        class.counts[lru] += 1;
        class.lists[lru].add_newest(&mut self.links, number);
    }

    fn take(&mut self, number: u32) {
        let item = self.items[number as usize];
        let class = &mut self.classes[item.class as usize];
        class.counts[item.lru as usize] -= 1;
        class.lists[item.lru as usize].remove(&mut self.links, number);
    }

    fn unlink(&mut self, number: u32) {
        self.take(number);
        let item = self.items[number as usize];
        let class = &mut self.classes[item.class as usize];
        class.crawl.forget(item.until_s);
        let chunks = item.chunks.into_iter().filter(|chunk| *chunk != NO_CHUNK);
        class.free.extend(chunks);
        self.pages.hold(item.chunks, NO_ITEM);
        self.numbers.remove(&item.hash);
        self.free.push(number);
    }

    /// Seconds pass: the crawler removes items, and pages move.
    fn pass_time(&mut self, now_s: u32) {
        // In a longer pause nothing changes after this.
        let passed = now_s.saturating_sub(self.second).min(2 * MOST_SECONDS as u32);
        for second in (0..passed).rev() {
            self.second = now_s - second;
            self.note_expired();
            (0..self.classes.len()).for_each(|class| self.crawl(class));
            self.move_page();
        }
        self.second = self.second.max(now_s);
    }
}
