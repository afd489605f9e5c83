//! Attacks on the data directory by the service's user and by strangers, and what they get.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::Path;

use nix::unistd::{Gid, Uid, geteuid};

use super::{FileOwner, GuardedDir, check, give_file, owner_of};

/// The user of the service, an agent's user, and a user who attacks.
const SERVICE: u32 = 4_002;
const AGENT: u32 = 4_001;
const STRANGER: u32 = 4_003;

fn service() -> FileOwner {
    FileOwner {
        uid: Uid::from_raw(SERVICE),
        gid: Gid::from_raw(SERVICE),
    }
}

/// `true` if this process can give files away.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        println!("SKIPPED: only root can give files away");
    }
    is_root
}

fn make(path: &Path, uid: u32, mode: u32) {
    fs::create_dir(path).unwrap();
    lchown(path, Some(uid), Some(uid)).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn write(path: &Path, uid: u32) {
    fs::write(path, "x").unwrap();
    lchown(path, Some(uid), Some(uid)).unwrap();
}

fn uid(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn refusal(path: &Path) -> String {
    let refused = check(path, Some(service())).unwrap_err();
    let taken = GuardedDir::take(path, Some(service())).unwrap_err();
    assert_eq!(refused.to_string(), taken.to_string());
    refused.to_string()
}

#[test]
fn a_directory_that_another_user_can_replace_is_refused() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, owner, bits, said) in [
        ("strangers", STRANGER, 0o755, "user 4003 can write to"),
        ("services", SERVICE, 0o711, "user 4002 can write to"),
        ("open", 0, 0o777, "everybody can write to"),
    ] {
        let above = dir.path().join(name);
        make(&above, owner, bits);
        let data = above.join("a/data");
        let error = refusal(&data);
        assert!(error.contains(said) && error.contains("runuser"), "{error}");
        assert!(!above.join("a").exists(), "{name}: something was made");
    }
    // A sticky directory such as /tmp is no way in: what is in it belongs to its maker.
    let sticky = dir.path().join("sticky");
    make(&sticky, 0, 0o1777);
    check(&sticky.join("data"), Some(service())).unwrap();
    let link = dir.path().join("link");
    symlink(&sticky, &link).unwrap();
    let error = refusal(&link.join("data"));
    assert!(error.contains("/link is a link"), "{error}");
    let error = refusal(&dir.path().join("sticky/../data"));
    assert!(error.contains("has .."), "{error}");
}

#[test]
fn a_data_directory_of_others_is_refused() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    make(&data, STRANGER, 0o700);
    let error = refusal(&data);
    assert!(error.contains("belongs to user 4003"), "{error}");
    for (owner, bits, said) in [(0, 0o777, "everybody"), (SERVICE, 0o770, "group 4002")] {
        lchown(&data, Some(owner), Some(SERVICE)).unwrap();
        fs::set_permissions(&data, Permissions::from_mode(bits)).unwrap();
        let error = refusal(&data);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn what_is_made_in_a_directory_goes_to_its_user_and_nothing_else_does() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("above/data");
    let guarded = GuardedDir::take(&data, Some(service())).unwrap().unwrap();
    assert_eq!((uid(&data), mode(&data)), (0, 0o700));
    assert_eq!(mode(&dir.path().join("above")), 0o755);
    let [log, agent] = ["log", "agent"].map(|name| data.join(name));
    fs::create_dir(&log).unwrap();
    fs::write(log.join("1"), "x").unwrap();
    // A checkpoint of the state names its files twice.
    fs::hard_link(log.join("1"), data.join("1")).unwrap();
    make(&agent, AGENT, 0o700);
    write(&agent.join("key"), AGENT);
    let outside = dir.path().join("outside");
    write(&outside, 0);
    symlink(&outside, data.join("link")).unwrap();
    guarded.give().unwrap();
    for (path, owner) in [
        (data.clone(), SERVICE),
        (log.clone(), SERVICE),
        (log.join("1"), SERVICE),
        (agent.clone(), AGENT),
        (agent.join("key"), AGENT),
        (outside, 0),
        (dir.path().join("above"), 0),
    ] {
        assert_eq!(uid(&path), owner, "{}", path.display());
    }
    assert_eq!(owner_of(&data).unwrap(), Some(service()));
    // A start that is repeated takes what it gave away, for as long as it works there.
    fs::remove_file(data.join("link")).unwrap();
    let again = GuardedDir::take(&data, Some(service())).unwrap().unwrap();
    assert_eq!([&data, &log, &agent].map(|path| uid(path)), [0, 0, AGENT]);
    again.give().unwrap();
    assert_eq!([&data, &log].map(|path| uid(path)), [SERVICE, SERVICE]);
}

#[test]
fn what_the_services_user_put_in_the_way_is_refused_and_stays() {
    if !is_root() {
        return;
    }
    for kind in ["link", "second name", "strangers"] {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("shadow");
        write(&secret, 0);
        let data = dir.path().join("data");
        make(&data, SERVICE, 0o700);
        let log = data.join("log");
        make(&log, SERVICE, 0o700);
        let planted = log.join("1");
        match kind {
            "link" => {
                symlink(&secret, &planted).unwrap();
                lchown(&planted, Some(SERVICE), Some(SERVICE)).unwrap();
            }
            "second name" => fs::hard_link(&secret, &planted).unwrap(),
            _ => write(&planted, STRANGER),
        }
        let error = GuardedDir::take(&data, Some(service())).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("log/1 is a link"), "{kind}: {error}");
        assert_eq!(uid(&secret), 0, "{kind}: a file of root was given away");
        let uids = [&data, &log].map(|path| uid(path));
        assert_eq!(uids, [SERVICE, SERVICE], "{kind}: not given back");
    }
}

/// The owner of the data directory can rename what is in it, such as the directory of an agent on the same
/// host.
#[test]
fn a_directory_of_another_user_is_refused_in_the_place_of_the_stores() {
    if !is_root() {
        return;
    }
    for (name, is_taken) in [("agent", true), ("log", false), ("state/1", false)] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        make(&data, SERVICE, 0o700);
        if name.contains('/') {
            make(&data.join("state"), SERVICE, 0o700);
        }
        make(&data.join(name), AGENT, 0o700);
        let taken = GuardedDir::take(&data, Some(service()));
        assert_eq!(taken.is_ok(), is_taken, "{name}");
        assert_eq!(uid(&data.join(name)), AGENT, "{name}");
        if let Err(error) = taken {
            assert!(error.to_string().contains(name), "{error}");
            assert_eq!(uid(&data), SERVICE, "{name}: not given back");
        }
    }
}

#[test]
fn a_directory_that_changed_hands_meanwhile_is_not_given_again() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let guarded = GuardedDir::take(&data, Some(service())).unwrap().unwrap();
    lchown(&data, Some(SERVICE), Some(SERVICE)).unwrap();
    let secret = data.join("secret");
    write(&secret, 0);
    let error = guarded.give().unwrap_err().to_string();
    assert!(error.contains("meanwhile"), "{error}");
    assert_eq!(uid(&secret), 0);
}

#[test]
fn a_directory_in_use_stays_its_users() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    make(&data, SERVICE, 0o700);
    write(&data.join("LOCK"), SERVICE);
    let lock = fs::File::open(data.join("LOCK")).unwrap();
    lock.try_lock().unwrap();
    assert!(GuardedDir::take(&data, Some(service())).unwrap().is_none());
    assert_eq!(uid(&data), SERVICE);
    drop(lock);
    let guarded = GuardedDir::take(&data, Some(service())).unwrap();
    assert_eq!(uid(&data), 0);
    guarded.unwrap().give().unwrap();
}

#[test]
fn a_key_elsewhere_is_given_if_it_is_roots_alone() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("seal.key");
    give_file(&key, service()).unwrap();
    write(&key, 0);
    fs::hard_link(&key, dir.path().join("second")).unwrap();
    let error = give_file(&key, service()).unwrap_err().to_string();
    assert!(error.contains("with one name"), "{error}");
    fs::remove_file(dir.path().join("second")).unwrap();
    let link = dir.path().join("link");
    symlink(&key, &link).unwrap();
    assert!(give_file(&link, service()).is_err());
    assert_eq!(uid(&key), 0);
    give_file(&key, service()).unwrap();
    assert_eq!(uid(&key), SERVICE);
}

#[test]
fn a_caller_who_is_not_root_gives_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let guarded = GuardedDir::take(&data, None).unwrap().unwrap();
    guarded.give().unwrap();
    assert_eq!(uid(&data), geteuid().as_raw());
    fs::set_permissions(&data, Permissions::from_mode(0o757)).unwrap();
    let error = check(&data, None).unwrap_err().to_string();
    assert!(
        error.contains("everybody can write to") && error.contains("chmod go-w"),
        "{error}"
    );
}
