//! The counts of a report, as a table.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, Table, presets};

use super::Report;

impl Report {
    /// The counts of each row, medians over its rounds: one line for each.
    pub(crate) fn figures(&self) -> Table {
        let names: BTreeSet<&String> =
            self.rows.iter().flat_map(|row| &row.rounds).flat_map(|round| round.counted.keys()).collect();
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let rows = self.rows.iter().map(|row| row.name.to_owned());
        table.set_header(std::iter::once("figure".to_owned()).chain(rows));
        for name in names {
            let cells = self.rows.iter().map(|row| {
                row.median_of(name).map_or_else(|| "-".to_owned(), |median| format!("{median:.0}"))
            });
            table.add_row(std::iter::once(name.clone()).chain(cells));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}
