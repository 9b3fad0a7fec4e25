//! The table that `fidelity` prints.

use cachemark_fidelity::{Case, CaseResult, Unit};
use comfy_table::{CellAlignment, Table, presets};

/// A table without rows.
pub fn heading() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["case", "quantity", "answer", "measured", "tolerance", ""]);
    for (index, column) in table.column_iter_mut().enumerate() {
        if (2..5).contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Add the rows of a case that was played.
pub fn add_rows(table: &mut Table, case: &Case, case_result: &CaseResult, all: bool) {
    table.add_row([case.id, case.title]);
    let mut agreed = 0;
    for check in &case_result.checks {
        // Counts that are equal are summed up in one row.
        if check.expected == check.measured && check.unit == Unit::Count && !all {
            agreed += 1;
            continue;
        }
        let mark = if check.holds() { "ok" } else { "WRONG" };
        let [answer, measured, tolerance] = [check.expected, check.measured, check.tolerance]
            .map(|value| figure(value, check.unit));
        table.add_row(["", &check.quantity, &answer, &measured, &tolerance, mark]);
    }
    if agreed > 0 {
        table.add_row(["", &format!("{agreed} counts"), "", "equal", "0", "ok"]);
    }
}

fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Ns if value < 1e3 => format!("{value:.0} ns"),
        Unit::Ns if value < 1e6 => format!("{:.3} µs", value / 1e3),
        Unit::Ns if value < 1e9 => format!("{:.3} ms", value / 1e6),
        Unit::Ns => format!("{:.4} s", value / 1e9),
        Unit::Count => format!("{value:.0}"),
        Unit::PerSecond => format!("{value:.1} /s"),
        Unit::Ratio => format!("{value:.5}"),
    }
}
