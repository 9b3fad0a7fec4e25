//! The sizes by which `stats items` and `stats slabs` count items: the sizes of memcached's slab classes.

use cachemark_storage::{Item, SizeClasses};

use crate::state::settings::ITEM_HEADER_BYTES;
use crate::state::tuning::Tuning;

/// memcached's header of an item, to which `-n` adds the smallest room for key and value.
const HEADER_BYTES: u32 = 48;
const ALIGN_BYTES: u32 = 8;
/// All classes but the last.
const GROWING_MAX: usize = 62;

/// The classes that memcached has with these settings.
pub fn of(tuning: &Tuning) -> SizeClasses {
    let mut largest = match &tuning.slab_sizes[..] {
        [] => growing(tuning),
        sizes => sizes.iter().map(|size| size.next_multiple_of(ALIGN_BYTES)).collect(),
    };
    largest.push(tuning.slab_chunk_max);
    SizeClasses::new(largest, ITEM_HEADER_BYTES as usize)
}

/// Each size is `-f` times the one before.
fn growing(tuning: &Tuning) -> Vec<u32> {
    let end = f64::from(tuning.slab_chunk_max) / tuning.growth_factor;
    let first = HEADER_BYTES.saturating_add(tuning.chunk_size);
    let next = |size: &u32| Some((f64::from(*size) * tuning.growth_factor) as u32);
    let sizes = std::iter::successors(Some(first.next_multiple_of(ALIGN_BYTES)), |size| {
        next(size).map(|size| size.next_multiple_of(ALIGN_BYTES))
    });
    sizes.take_while(|size| f64::from(*size) < end).take(GROWING_MAX).collect()
}

/// The number of an item's class, from 1.
pub fn number(classes: Option<&SizeClasses>, key: &[u8], item: &Item<'_>) -> usize {
    1 + classes.map_or(0, |classes| classes.of(key.len(), item.value.len(), item.flags != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_classes_have_the_sizes_of_memcached() {
        let classes = of(&Tuning::default());
        let largest = classes.largest();
        assert_eq!(largest.len(), 39);
        assert_eq!(largest[..6], [96, 120, 152, 192, 240, 304]);
        assert_eq!((largest[30], largest[38]), (82_792, 524_288));
        let given = Tuning { slab_sizes: vec![100, 204], ..Tuning::default() };
        assert_eq!(of(&given).largest(), [104, 208, 524_288]);
        let steep = Tuning { growth_factor: 1.01, chunk_size: 1, ..Tuning::default() };
        assert_eq!(of(&steep).largest().len(), 63);
    }
}
