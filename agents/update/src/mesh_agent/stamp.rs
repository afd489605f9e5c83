use std::path::Path;
use std::time::SystemTime;

/// Properties of a file that change when it is written. A file that is missing has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FileStamp {
    modified: Option<SystemTime>,
    bytes: Option<u64>,
}

impl FileStamp {
    /// Those of a file.
    pub(super) fn of(path: &Path) -> Self {
        let meta = std::fs::metadata(path).ok();
        Self {
            modified: meta.as_ref().and_then(|meta| meta.modified().ok()),
            bytes: meta.map(|meta| meta.len()),
        }
    }
}
