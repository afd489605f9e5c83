//! Rights that a token carries, and their bounds.

use serde::{Deserialize, Serialize};

/// Most subjects of one token, in roles and permissions together; a token with more is refused. The
/// contract allows 500 in permissions. Each call reads all of them, so that more would slow calls.
pub const TOKEN_SUBJECTS_MAX: usize = 500;

/// Most methods of one token over all its subjects; a token with more is refused. Each call reads
/// all of them.
pub const TOKEN_METHODS_MAX: usize = 2000;

/// Longest subject in a token, bytes: `max_len` of the contract's `MethodPermission.subject`.
pub const TOKEN_SUBJECT_BYTES_MAX: usize = 256;

/// Roles over everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorViewer {
    /// Reads and changes.
    Editor,
    /// Reads only.
    Viewer,
}

/// Methods that a token may call on a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodPermission {
    /// Project id, tenant login or machine id. `*` stands for all that the user is a member of.
    pub subject: String,
    /// Full names of the methods that may be called on it.
    pub methods: Vec<String>,
}
