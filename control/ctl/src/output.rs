//! Output formats: tables, JSON, YAML and JSON path templates.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use comfy_table::{ContentArrangement, Table, presets};
use prost::Message;
use serde_json::Value;

use crate::jsonpath::PathTemplate;
use crate::out::printable;

/// The format of results, as `--output` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Table,
    /// A table with all columns.
    Wide,
    Json,
    Yaml,
    /// One line for each object, filled from a template.
    JsonPath(Arc<PathTemplate>),
}

impl FromStr for OutputFormat {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::JsonPath(Arc::new(template.parse()?)),
                None => bail!("use one of table, wide, json, yaml, jsonpath=TEMPLATE"),
            },
        })
    }
}

/// A message that has a row in a table.
pub(crate) trait TableRow: Message {
    /// Full name of the message in the contract.
    const NAME: &'static str;
    /// Column titles; those of wide tables alone come last.
    fn titles(wide: bool) -> Vec<&'static str>;
    /// The cells of the row, as many as there are titles.
    fn cells(&self, wide: bool) -> Vec<String>;
}

impl OutputFormat {
    /// `true` for tables, which are for people.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// `true` if tables have all columns.
    pub(crate) fn is_wide(&self) -> bool {
        *self == Self::Wide
    }

    /// Prints a list of messages.
    pub(crate) fn list<M: TableRow>(&self, messages: &[M]) -> Result<()> {
        if self.is_table() {
            print_rows(self.is_wide(), messages);
            return Ok(());
        }
        let values = messages.iter().map(to_json).collect::<Result<Vec<_>>>()?;
        self.value(&Value::Array(values))
    }

    /// Prints one message, as a table of one row or as an object.
    pub(crate) fn one<M: TableRow>(&self, message: &M) -> Result<()> {
        self.one_with(message, |message| {
            print_rows(self.is_wide(), std::slice::from_ref(message));
        })
    }

    /// Prints one message: by `details` for people, else as an object.
    pub(crate) fn one_with<M: TableRow>(
        &self,
        message: &M,
        details: impl FnOnce(&M),
    ) -> Result<()> {
        if self.is_table() {
            details(message);
            return Ok(());
        }
        self.value(&to_json(message)?)
    }

    /// Prints a JSON value. Table formats print it as JSON.
    pub(crate) fn value(&self, value: &Value) -> Result<()> {
        out!("{}", self.text(value)?);
        Ok(())
    }

    /// A JSON value as text, with a newline at the end.
    pub(crate) fn text(&self, value: &Value) -> Result<String> {
        Ok(match self {
            Self::Yaml => serde_norway::to_string(value).context("cannot write YAML")?,
            Self::JsonPath(template) => {
                let all = value
                    .as_array()
                    .map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                let lines = all.iter().map(|one| template.fill(one) + "\n");
                lines.collect()
            }
            Self::Table | Self::Wide | Self::Json => {
                serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n"
            }
        })
    }

    /// Prints a secret: the bare secret as a table, `whole` as JSON or YAML.
    pub(crate) fn secret(&self, secret: &str, whole: &Value) -> Result<()> {
        if self.is_table() {
            outln!("{secret}");
            return Ok(());
        }
        self.value(whole)
    }

    /// Prints one message whose type has no table: by `details` for people, else as an object.
    pub(crate) fn message<M: Message>(
        &self,
        name: &str,
        message: &M,
        details: impl FnOnce(&M),
    ) -> Result<()> {
        if self.is_table() {
            details(message);
            return Ok(());
        }
        self.value(&message_json(name, message)?)
    }
}

/// The JSON form of a message, as the contract defines it.
pub(crate) fn to_json<M: TableRow>(message: &M) -> Result<Value> {
    message_json(M::NAME, message)
}

/// The JSON form of a message by the full name of its type.
pub(crate) fn message_json<M: Message>(name: &str, message: &M) -> Result<Value> {
    let descriptor = proto_public::message(name).context("unknown message type")?;
    let decoded = proto_public::json::decode(&descriptor, &message.encode_to_vec())?;
    Ok(serde_json::from_slice(&proto_public::json::print_full(
        &decoded,
    )?)?)
}

/// Parses a message from its JSON form.
pub(crate) fn from_json<M: Message + Default>(name: &str, value: &Value) -> Result<M> {
    let descriptor = proto_public::message(name).context("unknown message type")?;
    let bytes = proto_public::json::to_proto(&descriptor, value.to_string().as_bytes())?;
    Ok(M::decode(bytes.as_slice())?)
}

fn print_rows<M: TableRow>(wide: bool, messages: &[M]) {
    let rows = messages.iter().map(|message| message.cells(wide));
    print_table(&M::titles(wide), rows);
}

/// Prints a table without borders.
pub(crate) fn print_table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    out!("{}", table(titles, rows));
}

/// A table without borders as text; no line ends with spaces.
pub(crate) fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(titles.iter().map(|title| title.to_uppercase()));
    for row in rows {
        table.add_row(row.iter().map(|cell| printable(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let text = table.to_string();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tenants choose names, and machines and switches report texts, that operators list.
    #[test]
    fn a_cell_does_not_steer_the_terminal() {
        let name = "x\u{1b}]0;owned\u{7}\u{1b}[2Jy\u{202e}é";
        let text = table(&["name"], [vec![name.to_owned()]]);
        let shown = r"x\u{1b}]0;owned\u{7}\u{1b}[2Jy\u{202e}é";
        assert_eq!(text, format!("NAME\n{shown}\n"));
    }
}
