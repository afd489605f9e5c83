//! Files that only their owner may read.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes a new file with mode 0600.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let named = |action| format!("cannot {action} {}", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| named("create"))?;
    file.write_all(content.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| named("write"))
}
