//! Backups that nobody asks for.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::daemon::{Daemon, PATIENCE, program};
use crate::s3::S3;

/// An age key for tests.
fn key() -> (String, String) {
    let key = control_backup::NewKey::generate();
    (key.recipient(), key.file())
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::yield_now();
    }
}

fn restores(file: &Path, key: &Path, dir: &Path) {
    let output = Command::new(program())
        .arg("restore")
        .arg(file)
        .arg("--data-dir")
        .arg(dir)
        .arg("--identity")
        .arg(key)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_directory_and_a_bucket_are_kept_supplied() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (recipient, secret) = key();
    fs::write(at("backup.key"), secret).unwrap();
    fs::write(at("access"), "access\n").unwrap();
    fs::write(at("secret"), "secret\n").unwrap();
    let backups = at("backups");
    fs::create_dir(&backups).unwrap();
    let old = ["20200101", "20200102", "20200103"].map(|day| {
        let name = format!("metalmesh-metalmesh-{day}T000000Z.backup");
        let file = File::create(backups.join(&name)).unwrap();
        let then = UNIX_EPOCH + Duration::from_secs(1_577_836_800);
        file.set_modified(then).unwrap();
        name
    });
    fs::write(backups.join("notes.txt"), "mine").unwrap();
    let s3 = S3::start();
    s3.put(&format!("east/{}", old[0]), b"old");
    s3.put("east/notes.txt", b"mine");
    let config = format!(
        "[backup]\nevery_minutes = 60\nkeep = 2\nrecipients = [\"{recipient}\"]\n\
         directory = \"{}\"\n[backup.s3]\nendpoint = \"http://{}\"\nbucket = \"backups\"\n\
         prefix = \"east\"\naccess_key_file = \"{}\"\nsecret_key_file = \"{}\"\n",
        backups.display(),
        s3.address,
        at("access").display(),
        at("secret").display()
    );
    fs::write(at("metalmeshd.toml"), config).unwrap();
    let flags = at("metalmeshd.toml");
    let flags = ["--config", flags.to_str().unwrap()];
    let daemon = Daemon::start_at(dir.path(), "127.0.0.1:0", &flags);

    let names = || -> Vec<String> {
        let entries = fs::read_dir(&backups).unwrap();
        let mut names: Vec<String> = entries
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    // The new one, the newest of the old ones, and what is not ours.
    let kept = wait_for("a backup and the removal of old ones", || {
        let names = names();
        (names.len() == 3 && !names.contains(&old[1])).then_some(names)
    });
    assert_eq!((&kept[0], kept[2].as_str()), (&old[2], "notes.txt"));
    let stored = wait_for("a backup in the bucket", || {
        let objects = s3.objects();
        (objects.len() == 3).then_some(objects)
    });
    let (name, bytes) = stored.iter().find(|(_, bytes)| bytes.len() > 100).unwrap();
    assert!(name.starts_with("east/metalmesh-metalmesh-2"), "{name}");
    fs::write(at("from-bucket"), bytes).unwrap();
    restores(&backups.join(&kept[1]), &at("backup.key"), &at("new-1"));
    restores(&at("from-bucket"), &at("backup.key"), &at("new-2"));
    // The next one is not due: a restart makes none.
    assert!(daemon.terminate().success());
    let daemon = Daemon::start_at(dir.path(), "127.0.0.1:0", &flags);
    assert!(daemon.terminate().success());
    assert_eq!(names(), kept);
}

#[test]
fn a_schedule_that_cannot_work_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metalmeshd.toml");
    let (recipient, _) = key();
    let missing = "access_key_file = \"/nowhere\"\nsecret_key_file = \"/nowhere\"";
    for (section, word) in [
        ("directory = \"/b\"".to_owned(), "backup.recipients"),
        (
            "directory = \"/b\"\nrecipients = [\"age1bad\"]".to_owned(),
            "is no age recipient",
        ),
        (
            format!(
                "recipients = [\"{recipient}\"]\n[backup.s3]\nendpoint = \"http://x\"\n\
                 bucket = \"b\"\n{missing}"
            ),
            "backup.s3.access_key_file",
        ),
    ] {
        fs::write(&file, format!("[backup]\n{section}\n")).unwrap();
        let output = Command::new(program())
            .args([
                "--dev",
                "--api-listen",
                "127.0.0.1:0",
                "--mesh-listen",
                "127.0.0.1:0",
            ])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .arg("--context-file")
            .arg(dir.path().join("config.yaml"))
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(word), "{error}");
    }
}
