use std::path::Path;
use std::time::SystemTime;

use crate::config::release_keys_file;

/// Properties of a file that change when it is written. A file that is missing has none.
type Properties = (Option<SystemTime>, Option<u64>);

/// Properties of a configuration, and of the keys beside it, that change when one of them is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    config: Properties,
    keys: Properties,
}

impl FileStamp {
    /// Those of a configuration.
    pub(crate) fn of(config: &Path) -> Self {
        Self {
            config: properties(config),
            keys: properties(&release_keys_file(config)),
        }
    }
}

fn properties(path: &Path) -> Properties {
    let meta = std::fs::metadata(path).ok();
    let modified = meta.as_ref().and_then(|meta| meta.modified().ok());
    (modified, meta.map(|meta| meta.len()))
}
