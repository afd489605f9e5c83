//! Objects and their changes in every output format.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType};
use serde_json::{Value, json};

use crate::kinds::ObjectKind;
use crate::output::{OutputFormat, table};

/// Width of the event column: characters of the longest event name.
const EVENT_WIDTH: usize = 7;

/// Formats the objects of a kind and their changes.
#[derive(Debug)]
pub(super) struct ObjectView<'a> {
    output: &'a OutputFormat,
    known: &'static ObjectKind,
    /// Column widths of a growing table. Wider cells widen the columns from then on.
    widths: Vec<usize>,
}

impl<'a> ObjectView<'a> {
    pub(super) fn new(output: &'a OutputFormat, known: &'static ObjectKind) -> Self {
        Self {
            output,
            known,
            widths: Vec::new(),
        }
    }

    /// The listed objects: a whole table or document, or the beginning of a stream.
    pub(super) fn listing(
        &mut self,
        there: &[WatchChange],
        is_one: bool,
        goes_on: bool,
    ) -> Result<String> {
        if goes_on {
            return self.stream(there);
        }
        if self.output.is_table() {
            let rows = there.iter().map(|change| self.cells(change));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            return Ok(table(&self.titles(), rows));
        }
        let mut values = there.iter().map(object).collect::<Result<Vec<_>>>()?;
        match (is_one, values.pop()) {
            (true, Some(one)) => self.output.text(&one),
            (_, last) => {
                values.extend(last);
                self.output.text(&Value::Array(values))
            }
        }
    }

    fn stream(&mut self, there: &[WatchChange]) -> Result<String> {
        if !self.output.is_table() {
            return there.iter().map(|change| self.change(change)).collect();
        }
        let titles: Vec<String> = self
            .titles()
            .iter()
            .map(|title| title.to_uppercase())
            .collect();
        let mut rows = vec![[vec!["EVENT".to_owned()], titles].concat()];
        for change in there {
            rows.push(self.event_cells(change)?);
        }
        for row in &rows {
            self.widen(row);
        }
        Ok(rows.iter().map(|row| self.row(row)).collect())
    }

    /// One change, on a line or as a document.
    pub(super) fn change(&mut self, change: &WatchChange) -> Result<String> {
        Ok(match self.output {
            OutputFormat::Table | OutputFormat::Wide => {
                let row = self.event_cells(change)?;
                self.widen(&row);
                self.row(&row)
            }
            OutputFormat::JsonPath(_) => self.output.text(&object(change)?)?,
            // One line for each change (JSON Lines), for programs that read line by line.
            OutputFormat::Json => format!("{}\n", event(change)?),
            OutputFormat::Yaml => format!("---\n{}", self.output.text(&event(change)?)?),
        })
    }

    fn titles(&self) -> Vec<&'static str> {
        let mut titles = (self.known.titles)(self.output.is_wide());
        if self.output.is_wide() {
            titles.push("revision");
        }
        titles
    }

    fn cells(&self, change: &WatchChange) -> Result<Vec<String>> {
        let wide = self.output.is_wide();
        let mut cells = match &change.object {
            Some(object) => (self.known.cells)(&object.value, wide)?,
            None => {
                // It was deleted while the server was away: only its id is known.
                let mut cells = vec!["-".to_owned(); (self.known.titles)(wide).len()];
                if let Some(first) = cells.first_mut() {
                    first.clone_from(&change.id);
                }
                cells
            }
        };
        if wide {
            cells.push(change.revision.to_string());
        }
        Ok(cells)
    }

    fn event_cells(&self, change: &WatchChange) -> Result<Vec<String>> {
        Ok([vec![event_name(change).to_owned()], self.cells(change)?].concat())
    }

    fn widen(&mut self, row: &[String]) {
        self.widths.resize(row.len(), 0);
        if let Some(event) = self.widths.first_mut() {
            *event = (*event).max(EVENT_WIDTH);
        }
        for (width, cell) in self.widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }

    fn row(&self, row: &[String]) -> String {
        let cells = row.iter().zip(&self.widths);
        let line: String = cells
            .map(|(cell, width)| format!("{cell:<width$}  "))
            .collect();
        format!("{}\n", line.trim_end())
    }
}

fn event_name(change: &WatchChange) -> &'static str {
    match change.r#type() {
        WatchChangeType::Present => "present",
        WatchChangeType::Created => "created",
        WatchChangeType::Changed => "changed",
        WatchChangeType::Deleted => "deleted",
        WatchChangeType::Unspecified => "-",
    }
}

/// An object as JSON, with the revision of the state. A revision of its own, such as that of a set of
/// firewall rules, is `ownRevision`.
fn object(change: &WatchChange) -> Result<Value> {
    let Some(object) = &change.object else {
        return Ok(json!({ "id": change.id, "revision": change.revision }));
    };
    let name = object.type_url.rsplit('/').next().unwrap_or_default();
    let descriptor = proto_public::message(name)
        .with_context(|| format!("the server sent a {name:?}, which this version does not know"))?;
    let message = proto_public::json::decode(&descriptor, &object.value)?;
    let text = proto_public::json::print_full(&message)?;
    let mut fields: BTreeMap<String, Value> = serde_json::from_slice(&text)?;
    if let Some(own) = fields.remove("revision") {
        fields.insert("ownRevision".to_owned(), own);
    }
    fields.insert("revision".to_owned(), json!(change.revision));
    Ok(json!(fields))
}

fn event(change: &WatchChange) -> Result<Value> {
    Ok(json!({
        "event": event_name(change), "kind": change.kind, "id": change.id,
        "revision": change.revision, "object": object(change)?,
    }))
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
