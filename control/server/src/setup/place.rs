//! Writes the configuration file, and gives files to the user that the service runs as.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nix::unistd::{Gid, Uid, User, geteuid};

/// Default name of the user that the service runs as.
const SERVICE_USER: &str = "metalmesh";

/// The user that gets the files. Only root can give files away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileOwner {
    uid: Uid,
    gid: Gid,
}

impl FileOwner {
    /// `true` if the permission bits of a file let this user read it. Further groups of the user are
    /// not looked at.
    pub(super) fn can_read(self, file: &Metadata) -> bool {
        let read = if file.uid() == self.uid.as_raw() {
            0o400
        } else if file.gid() == self.gid.as_raw() {
            0o040
        } else {
            0o004
        };
        file.permissions().mode() & read != 0
    }
}

/// Finds the user that the service runs as. `None` means that the files stay with the caller.
///
/// # Errors
/// The named user does not exist, or the caller is not root.
pub(super) fn file_owner(name: Option<&str>) -> Result<Option<FileOwner>> {
    let is_root = geteuid().is_root();
    if !is_root && name.is_none() {
        return Ok(None);
    }
    let wanted = name.unwrap_or(SERVICE_USER);
    let found =
        User::from_name(wanted).with_context(|| format!("cannot look up user {wanted:?}"))?;
    match (found, name) {
        (Some(user), _) if is_root => Ok(Some(FileOwner {
            uid: user.uid,
            gid: user.gid,
        })),
        // A caller who is the service's user already has nothing to give away.
        (Some(user), _) if user.uid == geteuid() => Ok(None),
        (Some(_), _) => {
            bail!("--service-user {wanted}: only root can give files to it; run this as root")
        }
        (None, Some(_)) => bail!(
            "--service-user {wanted}: there is no such user; install the package, or name another one"
        ),
        (None, None) => Ok(None),
    }
}

/// Writes the configuration file as a whole or not at all: mode 0600, and 0640 for the group of the
/// service. An existing file stays unless `replaces`.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write_config(
    path: &Path,
    text: &str,
    replaces: bool,
    owner: Option<FileOwner>,
) -> Result<u32> {
    let named = || format!("cannot write {}", path.display());
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(parent)
        .with_context(|| format!("cannot make {}", parent.display()))?;
    let mut file = tempfile::NamedTempFile::new_in(parent).with_context(named)?;
    file.write_all(text.as_bytes()).with_context(named)?;
    let mode = match owner {
        Some(owner) => {
            lchown(file.path(), None, Some(owner.gid.as_raw())).with_context(named)?;
            0o640
        }
        None => 0o600,
    };
    let permissions = Permissions::from_mode(mode);
    file.as_file()
        .set_permissions(permissions)
        .with_context(named)?;
    file.as_file().sync_all().with_context(named)?;
    if replaces {
        file.persist(path)
            .map_err(|error| error.error)
            .with_context(named)?;
    } else {
        let placed = file.persist_noclobber(path).map_err(|error| error.error);
        placed.with_context(|| format!("{}; --force replaces an existing file", named()))?;
    }
    File::open(parent)
        .and_then(|parent| parent.sync_all())
        .with_context(named)?;
    Ok(mode)
}

/// Gives a directory to its owner, with all in it that is this process's or the owner's. Directories of
/// others stay, such as an agent's beside control's: their users could put links to anywhere into
/// them.
///
/// # Errors
/// An entry cannot be read or given away.
pub(super) fn give_away(dir: &Path, owner: FileOwner) -> Result<()> {
    let named = |path: &Path| format!("cannot give {} to the service's user", path.display());
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = std::fs::symlink_metadata(&path).with_context(|| named(&path))?;
        if ![geteuid(), owner.uid].contains(&Uid::from_raw(kind.uid())) {
            continue;
        }
        if kind.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(|| named(&path))? {
                waiting.push(entry.with_context(|| named(&path))?.path());
            }
        }
        let (uid, gid) = (Some(owner.uid.as_raw()), Some(owner.gid.as_raw()));
        lchown(&path, uid, gid).with_context(|| named(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_private_and_replaced_only_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etc/metalmeshd.toml");
        assert_eq!(write_config(&path, "first", false, None).unwrap(), 0o600);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = format!(
            "{:#}",
            write_config(&path, "second", false, None).unwrap_err()
        );
        assert!(
            error.contains("--force") && error.contains("metalmeshd.toml"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
        write_config(&path, "second", true, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second");
        let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn the_directory_of_an_agent_stays_its_own() {
        if !geteuid().is_root() {
            println!("SKIPPED: only root can give files away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let [log, agent] = ["log", "agent"].map(|name| dir.path().join(name));
        std::fs::create_dir(&log).unwrap();
        std::fs::create_dir(&agent).unwrap();
        std::fs::write(agent.join("key"), "x").unwrap();
        lchown(&agent, Some(4_001), Some(4_001)).unwrap();
        let owner = FileOwner {
            uid: Uid::from_raw(4_002),
            gid: Gid::from_raw(4_002),
        };
        give_away(dir.path(), owner).unwrap();
        let key = agent.join("key");
        let uids = [dir.path(), &log, &agent, &key];
        let uids = uids.map(|path| std::fs::metadata(path).unwrap().uid());
        assert_eq!(uids, [4_002, 4_002, 4_001, 0]);
    }

    #[test]
    fn files_are_given_to_users_that_exist() {
        let error = file_owner(Some("no-such-user-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-user-here"), "{error}");
        let own = FileOwner {
            uid: geteuid(),
            gid: nix::unistd::getegid(),
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("log")).unwrap();
        let file = dir.path().join("log/1");
        std::fs::write(&file, "x").unwrap();
        give_away(dir.path(), own).unwrap();
        let other = FileOwner {
            uid: Uid::from_raw(own.uid.as_raw() + 1),
            gid: Gid::from_raw(own.gid.as_raw() + 1),
        };
        let group = FileOwner {
            uid: other.uid,
            gid: own.gid,
        };
        for (mode, readers) in [
            (0o600, [true, false, false]),
            (0o640, [true, true, false]),
            (0o604, [true, false, true]),
        ] {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let found = std::fs::metadata(&file).unwrap();
            let can = [own, group, other].map(|reader| reader.can_read(&found));
            assert_eq!(can, readers, "{mode:o}");
        }
    }
}
