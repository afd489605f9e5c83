//! Owners and modes of the files of a first start, and what a user of the host can put in its way.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::daemon::program;
use crate::setup::{FreshHost, failure, report};

/// Files and directories below a directory, itself among them.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut found = vec![dir.to_owned()];
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false => found.push(path),
        }
    }
    found
}

#[test]
fn a_directory_that_others_may_read_gets_private_files() {
    let dir = tempfile::tempdir().unwrap();
    let host = FreshHost::new(dir.path().join("1"));
    let data = host.dir.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    report(&host.init(&[]));
    let found = tree(&data);
    assert!(found.len() > 5, "{found:?}");
    for path in found.iter().filter(|path| **path != data) {
        let mode = FreshHost::mode(path);
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    // One that others may write to is refused: they could have put anything there.
    let open = FreshHost::new(dir.path().join("2"));
    let data = open.dir.join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    let error = failure(&open.init(&["--accept", "disk"]));
    assert!(error.contains("everybody can write to"), "{error}");
    assert!(!open.config().exists() && tree(&data).len() == 1);
}

#[test]
fn root_gives_the_directory_to_its_user_and_is_led_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    if fs::metadata(dir.path()).unwrap().uid() != 0 {
        println!("SKIPPED: only root can give files away");
        return;
    }
    // A user without a password or a shell, whom every Linux has.
    let user = "nobody";
    let host = FreshHost::new(dir.path().join("1"));
    report(&host.init(&["--service-user", user]));
    let data = host.dir.join("data");
    let owner = fs::metadata(&data).unwrap().uid();
    assert_ne!(owner, 0);
    for path in tree(&data) {
        let uid = fs::metadata(&path).unwrap().uid();
        assert_eq!(uid, owner, "{}", path.display());
    }
    // Another token leaves nothing of root's behind.
    let token = |file: &str| {
        let mut command = Command::new(program());
        command.arg("token").arg("--config").arg(host.config());
        command.arg("--token-file").arg(host.dir.join(file));
        command.stdin(Stdio::null()).output().unwrap()
    };
    let made = token("second.token");
    assert!(made.status.success(), "{made:?}");
    let is_owners = |path: &PathBuf| fs::metadata(path).unwrap().uid() == owner;
    assert!(tree(&data).iter().all(is_owners));
    // Nor does a node that root starts by mistake.
    let mut command = Command::new(program());
    command.arg("--config").arg(host.config());
    let error = failure(&command.stdin(Stdio::null()).output().unwrap());
    assert!(error.contains("belongs to user"), "{error}");
    // A link that the user put there leads root nowhere.
    let secret = dir.path().join("secret");
    fs::write(&secret, "x").unwrap();
    let planted = data.join("log/99");
    symlink(&secret, &planted).unwrap();
    lchown(&planted, Some(owner), Some(owner)).unwrap();
    let error = failure(&token("third.token"));
    assert!(error.contains("log/99 is a link"), "{error}");
    assert_eq!(fs::metadata(&secret).unwrap().uid(), 0);
    assert_eq!(fs::metadata(&data).unwrap().uid(), owner);
    fs::remove_file(planted).unwrap();
    // A directory below one of that user can be exchanged under root's hands.
    let below = FreshHost::new(dir.path().join("2"));
    lchown(&below.dir, Some(owner), Some(owner)).unwrap();
    let error = failure(&below.init(&["--service-user", user]));
    assert!(
        error.contains("can write to") && error.contains("which is above it"),
        "{error}"
    );
    assert!(!below.config().exists() && !below.dir.join("data").exists());
}
