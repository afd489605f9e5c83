//! Results as tables, JSON, YAML or what a template picks from them.

use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use comfy_table::{ContentArrangement, Table, presets};
use prost::Message;
use serde_json::Value;

use crate::jsonpath::Template;

/// How to print results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    /// More columns.
    Wide,
    Json,
    Yaml,
    /// A line for each object.
    JsonPath(Arc<Template>),
}

impl FromStr for Format {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "table" => Self::Table,
            "wide" => Self::Wide,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::JsonPath(Arc::new(template.parse()?)),
                None => bail!("it is none of table, wide, json, yaml, jsonpath=TEMPLATE"),
            },
        })
    }
}

/// A message that has a row in a table.
pub(crate) trait Row: Message {
    /// Its full name in the contract.
    const NAME: &'static str;
    /// Titles of the columns; those of wide tables come last.
    fn titles(wide: bool) -> Vec<&'static str>;
    /// Its cells, as many as titles.
    fn cells(&self, wide: bool) -> Vec<String>;
}

impl Format {
    /// Whether it is for people.
    pub(crate) fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Whether tables have all columns.
    pub(crate) fn is_wide(&self) -> bool {
        *self == Self::Wide
    }

    /// Prints many.
    pub(crate) fn list<M: Row>(&self, messages: &[M]) -> Result<()> {
        if self.is_table() {
            print_rows(self.is_wide(), messages);
            return Ok(());
        }
        let values = messages.iter().map(to_json).collect::<Result<Vec<_>>>()?;
        self.value(&Value::Array(values))
    }

    /// Prints one.
    pub(crate) fn one<M: Row>(&self, message: &M) -> Result<()> {
        self.one_with(message, |message| {
            print_rows(self.is_wide(), std::slice::from_ref(message));
        })
    }

    /// Prints one, for people as `details` likes it.
    pub(crate) fn one_with<M: Row>(&self, message: &M, details: impl FnOnce(&M)) -> Result<()> {
        if self.is_table() {
            details(message);
            return Ok(());
        }
        self.value(&to_json(message)?)
    }

    /// Prints JSON that is there already; tables have it as JSON.
    pub(crate) fn value(&self, value: &Value) -> Result<()> {
        out!("{}", self.text(value)?);
        Ok(())
    }

    /// JSON that is there already as text, with its last line's end.
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

    /// Prints a secret: alone for people and scripts, with its object as JSON or YAML.
    pub(crate) fn secret(&self, secret: &str, whole: &Value) -> Result<()> {
        if self.is_table() {
            outln!("{secret}");
            return Ok(());
        }
        self.value(whole)
    }

    /// Prints one message of a type without a table.
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

/// The JSON form of a message.
pub(crate) fn to_json<M: Row>(message: &M) -> Result<Value> {
    message_json(M::NAME, message)
}

pub(crate) fn message_json<M: Message>(name: &str, message: &M) -> Result<Value> {
    let descriptor = proto_public::message(name).context("unknown message type")?;
    let decoded = proto_public::json::decode(&descriptor, &message.encode_to_vec())?;
    Ok(serde_json::from_slice(&proto_public::json::print_full(
        &decoded,
    )?)?)
}

/// A message from its JSON form.
pub(crate) fn from_json<M: Message + Default>(name: &str, value: &Value) -> Result<M> {
    let descriptor = proto_public::message(name).context("unknown message type")?;
    let bytes = proto_public::json::to_proto(&descriptor, value.to_string().as_bytes())?;
    Ok(M::decode(bytes.as_slice())?)
}

fn print_rows<M: Row>(wide: bool, messages: &[M]) {
    let rows = messages.iter().map(|message| message.cells(wide));
    print_table(&M::titles(wide), rows);
}

/// Prints a plain table.
pub(crate) fn print_table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    out!("{}", table(titles, rows));
}

/// A plain table as text.
pub(crate) fn table(titles: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(titles.iter().map(|title| title.to_uppercase()));
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    let text = table.to_string();
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}
