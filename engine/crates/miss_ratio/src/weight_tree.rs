//! Sums of weights behind a place, in steps of 32.

const WIDTH: usize = 32;

/// Weights by place. A change and a sum take one step for each level; a level has 32 times fewer sums than the one below.
#[derive(Clone, Debug, Default)]
pub struct WeightTree {
    levels: Vec<Vec<u64>>,
}

impl WeightTree {
    /// A tree of `places` places, all without weight.
    pub fn new(places: usize) -> WeightTree {
        let mut levels = Vec::new();
        let mut count = places.max(1);
        loop {
            count = count.next_multiple_of(WIDTH);
            levels.push(vec![0; count]);
            if count == WIDTH {
                return WeightTree { levels };
            }
            count /= WIDTH;
        }
    }

    /// A tree of `places` places, the first of them with these weights.
    pub fn of(places: usize, weights: impl Iterator<Item = u64>) -> WeightTree {
        let mut tree = WeightTree::new(places);
        tree.levels[0].iter_mut().zip(weights).for_each(|(sum, weight)| *sum = weight);
        for level in 1..tree.levels.len() {
            let (below, above) = tree.levels.split_at_mut(level);
            let sums = below[level - 1].chunks(WIDTH).map(|part| part.iter().sum());
            above[0].iter_mut().zip(sums).for_each(|(sum, of)| *sum = of);
        }
        tree
    }

    pub fn places(&self) -> usize {
        self.levels[0].len()
    }

    #[inline]
    pub fn add(&mut self, place: usize, weight: u64) {
        let mut at = place;
        for level in &mut self.levels {
            level[at] += weight;
            at /= WIDTH;
        }
    }

    #[inline]
    pub fn subtract(&mut self, place: usize, weight: u64) {
        let mut at = place;
        for level in &mut self.levels {
            level[at] -= weight;
            at /= WIDTH;
        }
    }

    /// A value of each line of memory that a change or a sum at this place needs of the largest levels.
    #[inline]
    pub fn near(&self, place: usize) -> u64 {
        let begin = place / WIDTH * WIDTH;
        let lines = self.levels[0][begin..begin + WIDTH].iter().step_by(8);
        lines.fold(self.levels.get(1).map_or(0, |level| level[place / WIDTH]), |a, b| a ^ b)
    }

    /// The weight of all places behind this one.
    #[inline]
    pub fn behind(&self, place: usize) -> u64 {
        let (mut at, mut sum) = (place, 0);
        for level in &self.levels {
            let end = (at / WIDTH + 1) * WIDTH;
            sum += level[at + 1..end].iter().sum::<u64>();
            at /= WIDTH;
        }
        sum
    }
}
