use std::path::Path;
use std::time::SystemTime;

/// Properties of a file that change when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    modified: Option<SystemTime>,
    length: Option<u64>,
}

impl FileStamp {
    /// Those of a file. A file that is missing has none.
    pub(crate) fn of(path: &Path) -> Self {
        let meta = std::fs::metadata(path).ok();
        Self {
            modified: meta.as_ref().and_then(|meta| meta.modified().ok()),
            length: meta.map(|meta| meta.len()),
        }
    }
}
