//! A distribution of whole numbers as a short text that experiments have: numbers and ranges by weight.

/// A number with a larger part stands alone; others are joined until they have it.
const PART: f64 = 1.0 / 48.0;

/// The text of these numbers, each as likely; `None` if there are none.
///
/// ```
/// use cachemark_trace_fit::value_table;
///
/// assert_eq!(value_table(vec![20; 9]).as_deref(), Some("20"));
/// assert_eq!(value_table(vec![60, 0, 60, 60]).as_deref(), Some("0=0.25,60=0.75"));
/// assert_eq!(value_table(vec![]), None);
/// ```
pub fn value_table(mut numbers: Vec<u32>) -> Option<String> {
    numbers.sort_unstable();
    let all = numbers.len() as f64;
    let mut entries: Vec<(u32, u32, usize)> = Vec::new();
    let mut open: Option<(u32, u32, usize)> = None;
    for same in numbers.chunk_by(|a, b| a == b) {
        let number = same[0];
        if same.len() as f64 >= PART * all {
            entries.extend(open.take());
            entries.push((number, number, same.len()));
            continue;
        }
        let (low, _, count) = open.unwrap_or((number, number, 0));
        let joined = (low, number, count + same.len());
        if joined.2 as f64 >= PART * all {
            entries.push(joined);
            open = None;
        } else {
            open = Some(joined);
        }
    }
    entries.extend(open);
    let text = |(low, high, _): &(u32, u32, usize)| {
        if low == high { low.to_string() } else { format!("{low}..{high}") }
    };
    match &entries[..] {
        [] => None,
        [only] => Some(text(only)),
        _ => {
            let weight = |count: usize| (count as f64 / all * 1e5).round().max(1.0) / 1e5;
            let of = |entry: &(u32, u32, usize)| format!("{}={}", text(entry), weight(entry.2));
            Some(entries.iter().map(of).collect::<Vec<_>>().join(","))
        }
    }
}
