//! The most popular keys, with a bounded number of counters (SpaceSaving; Metwally, Agrawal, El Abbadi 2005).

use std::collections::HashMap;

use serde::Serialize;

const COUNTERS: usize = 4096;

/// A popular key. Its true count is at most `count`, and at least `count - error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HotKey {
    pub key: String,
    pub count: u64,
    pub error: u64,
}

/// Counters in a heap, the smallest first. A key without a counter takes over the smallest one.
#[derive(Default)]
pub(crate) struct SpaceSaving {
    places: HashMap<Vec<u8>, usize>,
    heap: Vec<Counter>,
}

struct Counter {
    key: Vec<u8>,
    count: u64,
    error: u64,
}

impl SpaceSaving {
    pub fn add(&mut self, key: &[u8], count: u64) {
        if let Some(&place) = self.places.get(key) {
            self.heap[place].count += count;
            return self.sink(place);
        }
        if self.heap.len() < COUNTERS {
            self.places.insert(key.to_vec(), self.heap.len());
            self.heap.push(Counter { key: key.to_vec(), count, error: 0 });
            return self.rise(self.heap.len() - 1);
        }
        let least = &mut self.heap[0];
        self.places.remove(&least.key);
        least.error = least.count;
        least.count += count;
        least.key.clear();
        least.key.extend_from_slice(key);
        self.places.insert(key.to_vec(), 0);
        self.sink(0);
    }

    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.heap[place].count < self.heap[(place - 1) / 2].count {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sink(&mut self, mut place: usize) {
        loop {
            let children = 2 * place + 1..(2 * place + 3).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child].count) else { return };
            if self.heap[least].count >= self.heap[place].count {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            *self.places.get_mut(&self.heap[place].key).expect("each counter has a place") = place;
        }
    }

    /// The keys whose order is certain first: by the count that they have at least.
    pub fn hottest(&self) -> Vec<HotKey> {
        let mut keys: Vec<_> = self
            .heap
            .iter()
            .map(|counter| HotKey {
                key: String::from_utf8_lossy(&counter.key).into_owned(),
                count: counter.count,
                error: counter.error,
            })
            .collect();
        keys.sort_by(|a, b| (b.count - b.error, &a.key).cmp(&(a.count - a.error, &b.key)));
        keys
    }
}
