//! Files that only their owner may read, and directories that others may enter.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, Result};
use nix::fcntl::OFlag;

/// Writes a new file with mode 0600, as a whole or not at all: a part of a key would be taken for one by
/// the next start.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn write_private(path: &Path, content: &str) -> Result<()> {
    let named = |action| format!("cannot {action} {}", path.display());
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    // Its mode is 0600 from the beginning.
    let mut file = tempfile::NamedTempFile::new_in(parent).with_context(|| named("create"))?;
    file.write_all(content.as_bytes())
        .and_then(|()| file.as_file().sync_all())
        .with_context(|| named("write"))?;
    let placed = file.persist_noclobber(path).map_err(|error| error.error);
    placed.with_context(|| named("create"))?;
    std::fs::File::open(parent)
        .and_then(|parent| parent.sync_all())
        .with_context(|| named("write"))
}

/// Creates a directory and those above it that do not exist, with mode 0755 whatever the umask is.
pub(crate) fn make_open_dirs(dir: &Path) -> io::Result<()> {
    let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let missing: Vec<&Path> = dir.ancestors().take_while(is_missing).collect();
    for dir in missing.into_iter().rev() {
        std::fs::create_dir(dir)?;
        // By its descriptor: who can write to the directory above could have put a link in its place.
        let itself = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW;
        let made = OpenOptions::new()
            .read(true)
            .custom_flags(itself.bits())
            .open(dir)?;
        made.set_permissions(Permissions::from_mode(0o755))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_secret_is_written_once_as_a_whole_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_private(&path, "first").unwrap();
        assert_eq!(mode(&path), 0o600);
        let error = format!("{:#}", write_private(&path, "second").unwrap_err());
        assert!(
            error.contains("cannot create") && error.contains("key"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        // A link to nowhere is not followed.
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &link).unwrap();
        assert!(write_private(&link, "x").is_err());
        assert!(!dir.path().join("elsewhere").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn directories_above_are_open_to_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        make_open_dirs(&path).unwrap();
        make_open_dirs(&path).unwrap();
        assert_eq!([mode(&path), mode(&dir.path().join("a"))], [0o755; 2]);
    }
}
