//! Figures in words: the lines and tables that a terminal and a page show.

use cachemark_trace::file::Summary;
use serde::Serialize;

/// The figures, and the same in words.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "told")]
pub(super) struct Told<F: Serialize> {
    /// The kind of the answer.
    pub about: &'static str,
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    pub warnings: Vec<String>,
    pub sections: Vec<Section>,
    pub figures: F,
}

#[derive(Default, Serialize)]
pub(super) struct Section {
    pub title: &'static str,
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
    /// All columns are text.
    pub prose: bool,
}

/// What to know if most reads miss with any memory: in a short trace, most keys come for the first time.
pub(super) fn mostly_new(least_misses: f64) -> Option<String> {
    (least_misses > 0.5).then(|| {
        format!(
            "With any memory, {} of the reads miss: their keys come for the first time, or had expired. A longer trace \
             may show more hits.",
            percent(least_misses)
        )
    })
}

/// What of the file is in no figure, as warnings.
pub(super) fn unread(of: &Summary) -> Vec<String> {
    let left_out = of.left_out.iter().filter(|(_, count)| **count > 0);
    let reasons: Vec<String> =
        left_out.map(|(reason, count)| format!("{} {reason}", counted(*count as f64))).collect();
    let lists = [("Left out", reasons), ("Columns that are not used", of.unused_columns.clone())];
    let told = lists.into_iter().filter(|(_, list)| !list.is_empty());
    told.map(|(what, list)| format!("{what}: {}.", list.join(", "))).collect()
}

const DASH: &str = "–";

/// The text of a known value, or a dash.
pub(super) fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| DASH.to_owned(), text)
}

/// Such as 950, 12.3 k, 1.25 M: three significant digits.
pub(super) fn number(value: f64) -> String {
    let units = [(1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units.into_iter().find(|(factor, _)| value.abs() >= factor * 0.9995);
    let (factor, suffix) = unit.unwrap_or((1.0, ""));
    format!("{}{suffix}", three(value / factor))
}

/// A whole number of things.
pub(super) fn counted(count: f64) -> String {
    if count < 10_000.0 { format!("{count:.0}") } else { number(count) }
}

/// A count with its noun, such as `1 server` and `2 servers`.
pub(super) fn count_of(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Such as 850 ns, 61.2 µs, 1.25 ms.
pub(super) fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")];
    let unit = units.into_iter().find(|(factor, _)| value >= factor * 0.9995);
    let (factor, name) = unit.unwrap_or((1e-9, "ns"));
    format!("{} {name}", three(value / factor))
}

/// A time in its largest whole unit, such as 10 minutes.
pub(super) fn whole_time(seconds: u64) -> String {
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute")];
    let unit = units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size));
    let (size, name) = unit.unwrap_or((1, "second"));
    count_of((seconds / size) as usize, name)
}

/// Memory in MiB or GiB.
pub(super) fn memory(bytes: f64) -> String {
    let mib = bytes / f64::from(1 << 20);
    if mib >= 1024.0 && mib % 1024.0 == 0.0 {
        format!("{} GiB", mib / 1024.0)
    } else {
        format!("{} MiB", (mib * 10.0).round() / 10.0)
    }
}

/// A share, such as 12.3 %.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", (share * 1000.0).round() / 10.0)
}

fn three(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        let told = [0.0, 2e-9, 1.5e-5, 0.25, 3.0].map(seconds);
        assert_eq!(told, ["0", "2.00 ns", "15.0 µs", "250 ms", "3.00 s"]);
    }

    #[test]
    fn what_is_in_no_figure_is_told() {
        assert!(unread(&Summary::default()).is_empty());
        let mut summary = Summary { unused_columns: vec!["op_time".into()], ..Summary::default() };
        summary.left_out.insert("lines without a key".into(), 12_000);
        let told = ["Left out: 12.0 k lines without a key.", "Columns that are not used: op_time."];
        assert_eq!(unread(&summary), told);
    }

    #[test]
    fn figures_have_three_digits_and_units() {
        assert_eq!([950.0, 12_340.0, 1.25e6].map(number), ["950", "12.3 k", "1.25 M"]);
        assert_eq!([8.5e-7, 6.12e-5, 1.25].map(seconds), ["850 ns", "61.2 µs", "1.25 s"]);
        let times = [0, 1, 600, 5400, 86_400].map(whole_time);
        assert_eq!(times, ["0 seconds", "1 second", "10 minutes", "90 minutes", "1 day"]);
        let sizes = [64.0, 4096.0, 1634.04].map(|mib| memory(mib * f64::from(1 << 20)));
        assert_eq!(sizes, ["64 MiB", "4 GiB", "1634 MiB"]);
        assert_eq!([0.1234, 1.0].map(percent), ["12.3 %", "100 %"]);
    }
}
