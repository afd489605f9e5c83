//! Rows of the databases, and changes of them.

use std::collections::BTreeMap;

/// A row: fields by name.
pub(crate) type Row = BTreeMap<String, String>;
/// Rows by key.
pub(crate) type Rows = BTreeMap<String, Row>;

/// A change of a row of `CONFIG_DB`, or of the isolation group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Sets fields of a row, and makes it. Other fields stay.
    Set(String, Row),
    /// Removes a row.
    Remove(String),
    /// Gives orchagent the isolation group with these fields.
    Isolate(Row),
}

impl Change {
    /// A row with these fields. One without fields gets SONiC's mark for that.
    pub(super) fn set(key: String, fields: &[(&str, &str)]) -> Self {
        let marked = [("NULL", "NULL")];
        let fields = if fields.is_empty() {
            &marked[..]
        } else {
            fields
        };
        let fields = fields.iter();
        let row = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self::Set(key, row.collect())
    }

    pub(super) fn commands(&self) -> Vec<Vec<&str>> {
        match self {
            Self::Set(key, row) => {
                let mut words = vec!["HSET", key.as_str()];
                words.extend(
                    row.iter()
                        .flat_map(|(name, value)| [name.as_str(), value.as_str()]),
                );
                vec![words]
            }
            Self::Remove(key) => vec![vec!["DEL", key.as_str()]],
            Self::Isolate(group) => super::isolation::commands(group),
        }
    }
}
