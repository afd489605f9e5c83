//! All rows, and how they are shown.

use serde_json::{Map, Value, json};

use super::paired_row::PairedRow;
use super::process_row::ProcessRow;
use crate::table::table;

/// Every row that was measured.
#[derive(Debug, Default)]
pub(super) struct TenancyReport {
    /// Rows beside Ironic.
    pub(super) paired: Vec<PairedRow>,
    /// Rows in this process.
    pub(super) process: Vec<ProcessRow>,
}

impl TenancyReport {
    /// The tables for people.
    pub(super) fn tables(&self) -> String {
        let mut tables = Vec::new();
        if !self.paired.is_empty() {
            let rows = self.paired.iter().map(PairedRow::cells);
            tables.push(table(PairedRow::header(), rows));
        }
        if !self.process.is_empty() {
            let rows = self.process.iter().map(ProcessRow::cells);
            tables.push(table(ProcessRow::header(), rows));
        }
        tables.join("\n")
    }

    /// The line for programs.
    pub(super) fn json(&self) -> Value {
        let paired = self.paired.iter().map(|row| (row.name(), row.json()));
        let process = self.process.iter();
        let process = process.map(|row| (row.name.to_owned(), row.json()));
        let figures: Map<String, Value> = paired.chain(process).collect();
        json!({ "bench": "tenancy", "figures": figures, "missed": self.missed() })
    }

    /// Titles of the rows that are not as they must be.
    pub(super) fn missed(&self) -> Vec<String> {
        let paired = self.paired.iter();
        let paired = paired.filter(|row| row.is_met() == Some(false));
        let process = self.process.iter().filter(|row| !row.is_met());
        let titles = paired.map(PairedRow::title);
        titles.chain(process.map(|row| row.title.clone())).collect()
    }
}
