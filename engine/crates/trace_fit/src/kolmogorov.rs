//! The distance of two samples.

/// The largest difference between the parts of two samples that are at most a number (Kolmogorov and Smirnov). `None`
/// if one is empty.
///
/// ```
/// use cachemark_trace_fit::distance_of;
///
/// assert_eq!(distance_of(&mut [1, 2, 3, 4], &mut [4, 3, 2, 1]), Some(0.0));
/// assert_eq!(distance_of(&mut [1, 1, 1, 9], &mut [1, 9]), Some(0.25));
/// assert_eq!(distance_of::<u32>(&mut [], &mut [1]), None);
/// ```
pub fn distance_of<T: Ord>(a: &mut [T], b: &mut [T]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    a.sort_unstable();
    b.sort_unstable();
    let (mut in_a, mut in_b, mut largest) = (0, 0, 0.0_f64);
    while in_a < a.len() && in_b < b.len() {
        let number = (&a[in_a]).min(&b[in_b]);
        while in_a < a.len() && a[in_a] <= *number {
            in_a += 1;
        }
        while in_b < b.len() && b[in_b] <= *number {
            in_b += 1;
        }
        let parts = (in_a as f64 / a.len() as f64, in_b as f64 / b.len() as f64);
        largest = largest.max((parts.0 - parts.1).abs());
    }
    Some(largest)
}
