//! Keys are numbered in the order in which they come. A place has a number and a part of a hash: keys that are looked up
//! need one place in memory, and a key needs little.

/// The least places; always a power of two.
const LEAST_PLACES: usize = 1 << 10;

/// The numbers of keys by their hashes: open addressing.
#[derive(Default)]
pub(crate) struct Numbers {
    /// The upper half of the hash, and a key's number plus 1; 0 where there is none.
    places: Vec<u64>,
    /// By the number of a key.
    hashes: Vec<u64>,
}

impl Numbers {
    /// With memory for about this number of keys.
    pub fn for_keys(keys: usize) -> Numbers {
        let places = (4 * keys / 3 + 2).next_power_of_two();
        Numbers { places: vec![0; places], hashes: Vec::with_capacity(keys) }
    }

    /// The number of a key that has one.
    pub fn get(&self, hash: u64) -> Option<u32> {
        let at = *self.places.get(self.place(hash)?)?;
        (at as u32).checked_sub(1)
    }

    /// The number of a key, which may be its first one.
    #[inline]
    pub fn number(&mut self, hash: u64) -> u32 {
        // A quarter of the places stays free, so that a search ends soon.
        if 4 * (self.hashes.len() + 1) > 3 * self.places.len() {
            self.grow();
        }
        let place = self.place(hash).unwrap_or_default();
        match (self.places[place] as u32).checked_sub(1) {
            Some(number) => number,
            None => {
                self.hashes.push(hash);
                let number = self.hashes.len() as u32;
                self.places[place] = entry(hash, number);
                number - 1
            }
        }
    }

    /// The place of a key, or the free one where it would be. `None` if there are no places.
    #[inline]
    fn place(&self, hash: u64) -> Option<usize> {
        let last = self.places.len().checked_sub(1)?;
        let mut place = hash as usize & last;
        loop {
            let at = self.places[place];
            let is_alike = (at ^ hash) >> u32::BITS == 0;
            if at == 0 || is_alike && self.hashes[at as u32 as usize - 1] == hash {
                return Some(place);
            }
            place = (place + 1) & last;
        }
    }

    fn grow(&mut self) {
        let places = (2 * self.places.len()).max(LEAST_PLACES);
        self.places = Vec::new();
        self.places = vec![0; places];
        for number in 0..self.hashes.len() {
            let hash = self.hashes[number];
            if let Some(place) = self.place(hash) {
                self.places[place] = entry(hash, number as u32 + 1);
            }
        }
    }
}

fn entry(hash: u64, number: u32) -> u64 {
    hash >> u32::BITS << u32::BITS | u64::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_numbers_while_places_grow() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.get(7), None);
        // Some share their place, some also the upper half of their hash.
        let hash = |key: u64| key % 50 + ((key / 50) << 20) + ((key % 3) << 40);
        for key in 0..5000 {
            assert_eq!(numbers.get(hash(key)), None, "{key}");
            assert_eq!(numbers.number(hash(key)), key as u32);
        }
        for key in 0..5000 {
            assert_eq!(
                (numbers.get(hash(key)), numbers.number(hash(key))),
                (Some(key as u32), key as u32)
            );
        }
    }
}
