//! Pages that move between slab classes.
//!
//! Each second, memcached looks back at some: at the age of the oldest item in COLD of each class, and at evictions. A page
//! moves from the class with the oldest items to the one with the youngest that evicts.

use super::second::Second;
use super::{COLD, Memcached};
use crate::list::END;

const AGE_RATIO: f64 = 0.8;
const LEAST_SOURCE_PAGES: usize = 2;
/// A class with more free pages gives one up.
const FREE_PAGES: f64 = 2.5;

impl Memcached {
    /// The automover, once a second.
    pub(super) fn move_page(&mut self) {
        self.seconds += 1;
        let window_s = self.release.window_s();
        let (place, is_full) = (self.seconds % window_s, self.pages.all_used());
        self.note_second(place);
        let (mut oldest, mut oldest_age, mut youngest, mut youngest_age) =
            (None, 0, None, u32::MAX);
        for class in 0..self.classes.len() {
            let of = &self.classes[class];
            let age = of.history.iter().map(|second| second.age_s).sum::<u32>() / window_s as u32;
            let dirty = of.history.iter().any(|second| second.dirty);
            let (free, pages) = (of.free.len() as f64, of.pages.len());
            if free > FREE_PAGES * f64::from(of.chunks_of_page) * self.part
                && is_full
                && !dirty
                && pages > 1
            {
                return self.give_up_page(class, None);
            }
            if age > oldest_age && pages > LEAST_SOURCE_PAGES {
                (oldest, oldest_age) = (Some(class), age);
            }
            let seen = of.history.iter().filter(|second| second.evicted).count();
            let part: f64 = of.history.iter().map(|second| second.evicted_part).sum();
            if age < youngest_age && (seen > window_s / 2 || part / window_s as f64 > 0.25) {
                (youngest, youngest_age) = (Some((class, of.history[place].evicted)), age);
            }
        }
        if let (Some(from), Some((to, true))) = (oldest, youngest)
            && self.seconds > window_s
            && f64::from(youngest_age) < f64::from(oldest_age) * AGE_RATIO
        {
            self.give_up_page(from, Some(to));
        }
    }

    fn note_second(&mut self, place: usize) {
        let all: u64 = self.classes.iter().map(|class| class.evicted - class.evicted_before).sum();
        for class in &mut self.classes {
            let oldest = class.lists[COLD].oldest;
            let evicted = class.evicted - class.evicted_before;
            class.history[place] = Second {
                age_s: if oldest == END {
                    0
                } else {
                    self.second - self.items[oldest as usize].time_s
                },
                evicted: evicted > 0,
                evicted_part: if all == 0 { 0.0 } else { evicted as f64 / all as f64 },
                dirty: evicted > 0 || class.pages.len() > class.pages_before,
            };
            (class.evicted_before, class.pages_before) = (class.evicted, class.pages.len());
        }
    }
}
