//! Counts of reads that missed, and the error that comes from taking a part of the keys.

use crate::choice::{ONE, Stand};

/// Keys are divided into this number of groups by their hash; their differences show the error.
pub const GROUPS: usize = 16;

/// A figure of each group.
pub(crate) type Groups = [f64; GROUPS];

/// What the times between uses say about a size: misses of both parts' groups, beside the groups' keys and the larger
/// part's reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByTimes {
    pub reads: Groups,
    pub keys: Groups,
    pub misses: Groups,
    pub smaller_keys: Groups,
    pub smaller_misses: Groups,
}

/// Reads of one size of memory, by group, and of the hottest keys beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    groups: [Reads; GROUPS],
    hot: Reads,
}

/// Each read counts as the reads of all keys that its key stands for, in parts of `ONE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reads {
    reads: u64,
    misses: u64,
    bytes: u64,
    missed_bytes: u64,
}

/// A part of reads, and its standard error: 0 if all keys were followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Ratio {
    pub value: f64,
    pub error: f64,
}

/// The keys that were followed, beside the hottest: this part of those in the trace, which has all keys or some.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    pub part: f64,
    pub of_all_keys: bool,
}

impl Followed {
    fn is_part(self) -> bool {
        self.part < 1.0 || !self.of_all_keys
    }
}

/// The group of a key.
pub(crate) fn group_of(hash: u64) -> usize {
    // The highest bits choose keys.
    (hash as usize >> 8) % GROUPS
}

/// Some of the sizes of memory, by their numbers: at most 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(u64);

impl Sizes {
    /// The first ones.
    #[inline]
    pub fn first(count: usize) -> Sizes {
        Sizes(if count == 64 { u64::MAX } else { (1 << count) - 1 })
    }

    #[inline]
    pub fn with(self, size: usize) -> Sizes {
        Sizes(self.0 | 1 << size)
    }

    #[inline]
    pub fn or(self, other: Sizes) -> Sizes {
        Sizes(self.0 | other.0)
    }

    #[inline]
    pub fn has(self, size: usize) -> bool {
        self.0 >> size & 1 == 1
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The sizes that differ from the size before, the first from none.
    #[inline]
    fn edges(self) -> impl Iterator<Item = usize> {
        let mut left = self.0 ^ self.0 << 1;
        std::iter::from_fn(move || {
            let size = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (size < 64).then_some(size)
        })
    }
}

/// Tallies of many sizes. A read is counted where it begins to miss and where it ceases to: mostly at one size.
#[derive(Clone, Debug)]
pub(crate) struct Tallies {
    /// Misses, and their bytes, of a size minus the size before, modulo 2^64.
    steps: Vec<Tally>,
    /// Reads of every size.
    all: Tally,
}

impl Tallies {
    pub fn new(sizes: usize) -> Tallies {
        assert!(sizes <= 64, "{sizes} sizes");
        // Sizes that all lack a key have an edge behind the last one.
        Tallies { steps: vec![Tally::default(); sizes + 1], all: Tally::default() }
    }

    /// Count a read of `bytes`, if they are known, that misses in the sizes that lack the key.
    #[inline]
    pub fn count(&mut self, hash: u64, stand: Stand, lacking: Sizes, bytes: Option<u32>) {
        let (is_hot, weight) = (stand.is_hot, u64::from(stand.weight));
        let bytes = u64::from(bytes.unwrap_or(0)) * weight;
        let reads = self.all.reads_of(hash, is_hot);
        reads.reads += weight;
        reads.bytes += bytes;
        for size in lacking.edges() {
            let step = self.steps[size].reads_of(hash, is_hot);
            let (weight, bytes) = match lacking.has(size) {
                true => (weight, bytes),
                false => (weight.wrapping_neg(), bytes.wrapping_neg()),
            };
            step.misses = step.misses.wrapping_add(weight);
            step.missed_bytes = step.missed_bytes.wrapping_add(bytes);
        }
    }

    /// The tally of each size.
    pub fn of_sizes(&self) -> Vec<Tally> {
        let mut tally = self.all;
        let steps = &self.steps[..self.steps.len() - 1];
        steps
            .iter()
            .map(|step| {
                let groups = tally.groups.iter_mut().zip(&step.groups);
                groups.chain([(&mut tally.hot, &step.hot)]).for_each(|(reads, step)| {
                    reads.misses = reads.misses.wrapping_add(step.misses);
                    reads.missed_bytes = reads.missed_bytes.wrapping_add(step.missed_bytes);
                });
                tally
            })
            .collect()
    }
}

impl Tally {
    #[inline]
    fn reads_of(&mut self, hash: u64, is_hot: bool) -> &mut Reads {
        if is_hot { &mut self.hot } else { &mut self.groups[group_of(hash)] }
    }

    /// Count a read of `bytes`, if they are known.
    #[inline]
    pub fn count(&mut self, hash: u64, stand: Stand, missed: bool, bytes: Option<u32>) {
        let reads = self.reads_of(hash, stand.is_hot);
        let weight = u64::from(stand.weight);
        let (missed, bytes) = (u64::from(missed), u64::from(bytes.unwrap_or(0)) * weight);
        reads.reads += weight;
        reads.misses += weight * missed;
        reads.bytes += bytes;
        reads.missed_bytes += bytes * missed;
    }

    /// With the reads of hot keys of another tally.
    pub(crate) fn with_hot(mut self, other: &Tally) -> Tally {
        self.hot.reads += other.hot.reads;
        self.hot.misses += other.hot.misses;
        self.hot.bytes += other.hot.bytes;
        self.hot.missed_bytes += other.hot.missed_bytes;
        self
    }

    /// The part of all reads that missed. `population`: the reads of the whole trace, and its reads of the hottest
    /// keys.
    pub fn miss_ratio(&self, population: (u64, u64), followed: Followed) -> Ratio {
        self.miss_ratio_with(population, followed, None)
    }

    /// The same with what the times between the uses of a larger part say.
    pub(crate) fn miss_ratio_with(
        &self,
        (all, hot): (u64, u64),
        followed: Followed,
        times: Option<&ByTimes>,
    ) -> Ratio {
        let population = (all * u64::from(ONE), hot * u64::from(ONE));
        let by_line = followed.part < 1.0 && followed.of_all_keys;
        let found = by_line.then(|| self.by_line(population, times)).flatten();
        found.unwrap_or_else(|| {
            self.ratio(population, followed.is_part(), |reads| (reads.reads, reads.misses))
        })
    }

    /// The misses of all reads, from the followed ones and from how many more reads their keys have than there are. With
    /// times: the misses that a larger part has by them, and the followed ones beyond these.
    fn by_line(&self, (all, hot_all): (u64, u64), times: Option<&ByTimes>) -> Option<Ratio> {
        let others = all.saturating_sub(hot_all) as f64;
        let asked = self.groups.map(|reads| reads.reads as f64);
        let missed = self.groups.map(|reads| reads.misses as f64);
        let (misses, square) = match times {
            None => line((asked, [0.0; GROUPS]), missed, others, 0.0)?,
            Some(times) => {
                let beyond = std::array::from_fn(|at| missed[at] - times.smaller_misses[at]);
                let (beyond, own) = line((asked, times.smaller_keys), beyond, others, -1.0)?;
                let (misses, of_times) =
                    line((times.reads, times.keys), times.misses, others, 0.0)?;
                (misses + beyond, own + of_times)
            }
        };
        let value = (misses.clamp(0.0, others) + self.hot.misses as f64) / all as f64;
        Some(Ratio { value, error: square.sqrt() / all as f64 })
    }

    /// The part of all bytes that were asked for and missed. The bytes of the other keys are weighed as reads are.
    pub fn byte_miss_ratio(&self, followed: Followed) -> Ratio {
        let bytes: u64 = self.groups.iter().map(|reads| reads.bytes).sum();
        let population = (bytes + self.hot.bytes, self.hot.bytes);
        self.ratio(population, followed.is_part(), |reads| (reads.bytes, reads.missed_bytes))
    }

    /// `population`: all of the trace, and the hottest keys.
    fn ratio(
        &self,
        population: (u64, u64),
        is_part: bool,
        of: impl Fn(&Reads) -> (u64, u64),
    ) -> Ratio {
        let (all, hot_all) = population;
        if all == 0 {
            return Ratio::default();
        }
        let groups = self.groups.each_ref().map(&of);
        let (asked, missed) =
            groups.iter().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        let (_, hot_missed) = of(&self.hot);
        let part = all.saturating_sub(hot_all) as f64 / all as f64;
        let ratio = if asked == 0 { 0.0 } else { missed as f64 / asked as f64 };
        let value = part * ratio + hot_missed as f64 / all as f64;
        let squares: f64 = groups
            .iter()
            .map(|(asked, missed)| (*missed as f64 - ratio * *asked as f64).powi(2))
            .sum();
        // The ratio estimator's error, from groups as clusters.
        let number = GROUPS as f64;
        let error = (number / (number - 1.0) * squares).sqrt() / asked.max(1) as f64;
        Ratio { value, error: if is_part { part * error } else { 0.0 } }
    }

    /// Reads of the hottest keys, and of the keys that the others stand for.
    pub fn reads(&self) -> (u64, u64) {
        let others: u64 = self.groups.iter().map(|reads| reads.reads).sum();
        (self.hot.reads / u64::from(ONE), others / u64::from(ONE))
    }
}

/// The misses of `all` reads, and the square of their error, by a line through the groups (regression estimator; Cochran,
/// Sampling Techniques, 7.1). A read more is at most a miss more, and at least `least`. `None` if a group has no reads,
/// or all have the same number. Keys have weights, so that their number is right in the sum of all groups: a group that
/// misses more because it has more keys shows no error.
fn line(
    (asked, keys): (Groups, Groups),
    missed: Groups,
    all: f64,
    least: f64,
) -> Option<(f64, f64)> {
    let (reads, more_reads) = apart(&asked);
    let (misses, more_misses) = apart(&missed);
    if asked.contains(&0.0) || product(&more_reads, &more_reads) == 0.0 {
        return None;
    }
    let slope = slope(&more_reads, &more_misses).clamp(least, 1.0);
    let rest = without(&more_misses, &more_reads, slope);
    let more_keys = apart(&keys).1;
    let more_keys = without(&more_keys, &more_reads, self::slope(&more_reads, &more_keys));
    let rest = without(&rest, &more_keys, self::slope(&more_keys, &rest));
    let free = GROUPS as f64 - if product(&more_keys, &more_keys) > 0.0 { 3.0 } else { 2.0 };
    let square = GROUPS as f64 / free * product(&rest, &rest);
    Some((misses + slope * (all - reads), square))
}

/// The sum of the groups, and how far each is from their mean.
fn apart(of: &Groups) -> (f64, Groups) {
    let sum: f64 = of.iter().sum();
    (sum, of.map(|each| each - sum / GROUPS as f64))
}

fn product(a: &Groups, b: &Groups) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// By how much `b` grows with `a`; 0 if `a` does not differ.
fn slope(a: &Groups, b: &Groups) -> f64 {
    let squares = product(a, a);
    if squares > 0.0 { product(a, b) / squares } else { 0.0 }
}

fn without(of: &Groups, a: &Groups, slope: f64) -> Groups {
    std::array::from_fn(|at| of[at] - slope * a[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads and misses of the groups, whose keys stand for 10; 500 reads of hot keys, of which 50 missed.
    fn tally(groups: impl Fn(u64) -> (u64, u64)) -> Tally {
        let one = u64::from(ONE);
        let reads = |(reads, misses), keys| Reads {
            reads: reads * keys * one,
            misses: misses * keys * one,
            ..Reads::default()
        };
        let groups = std::array::from_fn(|at| reads(groups(at as u64), 10));
        Tally { groups, hot: reads((500, 50), 1) }
    }

    const TENTH: Followed = Followed { part: 0.1, of_all_keys: true };

    #[test]
    fn a_hot_part_is_corrected_along_the_line() {
        // 16 groups have 28,000 reads; a tenth of 250,000 reads would have been 25,000.
        let of = tally(|at| (1000 + 100 * at, 112 + 10 * at)).miss_ratio((250_500, 500), TENTH);
        let misses = (112.0 * 16.0 + 1200.0 - 0.1 * 3000.0) * 10.0 + 50.0;
        assert!((of.value - misses / 250_500.0).abs() < 1e-12, "{of:?}");
        assert!(of.error < 1e-12, "{of:?}");
    }

    #[test]
    fn without_a_line_it_is_the_ratio_of_reads() {
        let by_ratio = Followed { of_all_keys: false, ..TENTH };
        for groups in [|_| (1000, 100), |at| (100 * at, 10 * at)] {
            let of = tally(groups);
            let ratio = of.miss_ratio((250_500, 500), by_ratio);
            assert_eq!(of.miss_ratio((250_500, 500), TENTH), ratio);
            assert!((ratio.value - (25_000.0 + 50.0) / 250_500.0).abs() < 1e-12, "{ratio:?}");
        }
    }
}
