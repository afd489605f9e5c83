//! Writes the configuration file, and finds the user that the service runs as.

use std::fs::{File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use nix::unistd::{User, fchown, geteuid};

use crate::files;
use crate::guarded_dir::FileOwner;

/// Default name of the user that the service runs as.
const SERVICE_USER: &str = "metalmesh";

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
    files::make_open_dirs(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let mut file = tempfile::NamedTempFile::new_in(parent).with_context(named)?;
    file.write_all(text.as_bytes()).with_context(named)?;
    let mode = match owner {
        Some(owner) => {
            // By its descriptor: somebody who can write to the directory could exchange the name.
            fchown(file.as_file(), None, Some(owner.gid)).with_context(named)?;
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

#[cfg(test)]
mod tests {
    use nix::unistd::{Gid, Uid};

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
    fn files_are_given_to_users_that_exist() {
        let error = file_owner(Some("no-such-user-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-user-here"), "{error}");
        let own = FileOwner {
            uid: geteuid(),
            gid: nix::unistd::getegid(),
        };
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("1");
        std::fs::write(&file, "x").unwrap();
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
