//! Files, directories and links of the new system as data.

use super::rootfs::Owner;

/// A file, directory or link of the new system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemItem {
    /// Absolute path in the new system.
    pub path: String,
    /// The object at the path after the installation.
    pub state: ItemState,
}

/// The object at a path of the new system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemState {
    /// A file with this content.
    File(Owner, Vec<u8>),
    /// A directory; its content is kept.
    Dir(Owner),
    /// A symbolic link to this target.
    Link(String),
    /// Nothing: a file or link at the path is removed.
    Absent,
}

/// An item at a path.
pub(super) fn item(path: &str, state: ItemState) -> SystemItem {
    SystemItem {
        path: path.to_string(),
        state,
    }
}

/// A file of root with this mode and text.
pub(super) fn file(path: &str, mode: u32, text: impl Into<String>) -> SystemItem {
    item(
        path,
        ItemState::File(Owner::root(mode), text.into().into_bytes()),
    )
}

/// A symbolic link.
pub(super) fn link(path: &str, target: &str) -> SystemItem {
    item(path, ItemState::Link(target.to_string()))
}
