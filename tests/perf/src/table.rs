//! Tables of figures.

use comfy_table::{CellAlignment, Table, presets};

/// A table whose titles are read from the left, and numbers from the right.
pub(crate) fn table<const N: usize>(
    header: [String; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(header);
    table.add_rows(rows);
    for column in 1..N {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.to_string()
}

/// A number with so many digits behind the point. Empty means that there is none.
pub(crate) fn number(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(String::new, |number| format!("{number:.digits$}"))
}
