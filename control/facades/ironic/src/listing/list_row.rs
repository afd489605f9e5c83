//! Rows of a list.

use serde_json::Value;

/// The value that rows are sorted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortValue {
    /// The row has none; it comes before all others.
    Absent,
    /// A number, or a time in milliseconds.
    Number(u64),
    /// A text.
    Text(String),
}

/// A row that the caller may see. Its JSON is made only if it is on the page.
pub(crate) struct ListRow<'a> {
    /// Key of the row, which markers name: its id.
    pub(crate) key: String,
    /// The value that it is sorted by; rows with equal ones are in the order of their keys.
    pub(crate) sort: SortValue,
    /// Makes its JSON.
    pub(crate) make: Box<dyn FnOnce() -> Value + Send + 'a>,
}

impl SortValue {
    /// A text; an empty one is absent.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() {
            Self::Absent
        } else {
            Self::Text(text)
        }
    }
}
