//! Backups that nobody asks for.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::daemon::{Daemon, PATIENCE, POLL, program};
use crate::nodes::free_tcp;
use crate::s3::{Authority, S3};
use crate::scrape::Scrape;

/// An age key for tests.
fn key() -> (String, String) {
    let key = proto_backup::NewKey::generate();
    (key.recipient(), key.file())
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::sleep(POLL);
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

/// Makes a cluster in `dir`; how the names of its backups begin.
fn founded(dir: &Path) -> String {
    assert!(configured(dir, "").terminate().success());
    let node = fs::read_to_string(dir.join("data/NODE")).unwrap();
    let node: serde_json::Value = serde_json::from_str(&node).unwrap();
    let id = node["cluster_id"].as_str().unwrap();
    format!("metalmesh-metalmesh-{}-", &id[..8])
}

/// Names that the schedule gave long ago.
fn old(ours: &str) -> [String; 3] {
    ["20200101", "20200102", "20200103"].map(|day| format!("{ours}{day}T000000Z.backup"))
}

/// Starts a daemon with this configuration.
fn configured(dir: &Path, config: &str) -> Daemon {
    let file = dir.join("metalmeshd.toml");
    fs::write(&file, config).unwrap();
    Daemon::start_at(dir, "127.0.0.1:0", &["--config", file.to_str().unwrap()])
}

#[test]
fn a_directory_is_kept_supplied() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (recipient, secret) = key();
    fs::write(at("backup.key"), secret).unwrap();
    let backups = at("backups");
    fs::create_dir(&backups).unwrap();
    let ours = founded(dir.path());
    let old = old(&ours);
    // A cluster of the same name has backups in the same place, a newer one than ours among them.
    let others = ["2019", "2026"].map(|year| {
        let name = format!("metalmesh-metalmesh-00000000-{year}0101T000000Z.backup");
        File::create(backups.join(&name)).unwrap();
        name
    });
    for name in &old {
        let file = File::create(backups.join(name)).unwrap();
        let then = UNIX_EPOCH + Duration::from_secs(1_577_836_800);
        file.set_modified(then).unwrap();
    }
    fs::write(backups.join("notes.txt"), "mine").unwrap();
    let metrics = format!("127.0.0.1:{}", free_tcp());
    let config = format!(
        "[backup]\nevery_minutes = 60\nkeep = 2\nrecipients = [\"{recipient}\"]\n\
         directory = {backups:?}\n[metrics]\nlisten = \"{metrics}\"\n"
    );
    let daemon = configured(dir.path(), &config);
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
        (names.len() == 5 && !names.contains(&old[1])).then_some(names)
    });
    for name in [&old[2], &others[0], &others[1], "notes.txt"] {
        assert!(kept.iter().any(|it| it == name), "{name} in {kept:?}");
    }
    let is_new = |it: &&String| it.starts_with(&ours) && **it != old[2];
    let new = kept.iter().find(is_new).unwrap();
    restores(&backups.join(new), &at("backup.key"), &at("new"));
    // The next one is not due: a restart makes none.
    assert!(daemon.terminate().success());
    let daemon = configured(dir.path(), &config);
    let name = "metalmesh_backup_newest_timestamp_seconds";
    let made = wait_for("the newest backup in the metrics", || {
        let made = Scrape::of(&metrics).sum(name, &[]);
        (made > 0.0).then_some(made)
    });
    let ago = Duration::from_secs_f64(made);
    assert!((UNIX_EPOCH + ago).elapsed().unwrap() < Duration::from_secs(3600));
    assert!(daemon.terminate().success());
    assert_eq!(names(), kept);
}

/// The section for a store; `more` are further lines of it.
fn bucket(store: &S3, recipient: &str, more: &str) -> String {
    format!(
        "[backup]\nevery_minutes = 60\nkeep = 2\nrecipients = [\"{recipient}\"]\n\
         [backup.s3]\nendpoint = \"https://{}\"\nprefix = \"east\"\n\
         access_key_file = {:?}\n{more}\n",
        store.address, store.access_key_file
    )
}

#[test]
fn a_bucket_behind_tls_is_kept_supplied() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let authority = Authority::new(&at("tls"));
    let ours = founded(dir.path());
    let old = old(&ours).map(|name| format!("east/{name}"));
    let there = [&old[0], &old[1], &old[2], "east/notes.txt", "west.backup"];
    let Some(store) = S3::start(dir.path(), &authority, &there) else {
        return;
    };
    let (recipient, secret) = key();
    fs::write(at("backup.key"), secret).unwrap();
    let more = format!(
        "bucket = \"backups\"\nsecret_key_file = {:?}\nca_file = {:?}",
        store.secret_key_file, authority.ca
    );
    let config = bucket(&store, &recipient, &more);
    let daemon = configured(dir.path(), &config);
    wait_for("a backup in the bucket", || {
        let log = daemon.log();
        assert!(!log.contains("no backup was made"), "{log}");
        log.contains("backup made").then_some(())
    });
    let names = store.names();
    let [kept, new, notes, west] = names.as_slice() else {
        panic!("{names:?}");
    };
    assert_eq!(
        [kept, notes, west],
        [&old[2], "east/notes.txt", "west.backup"]
    );
    assert!(new.starts_with(&format!("east/{ours}2")), "{new}");
    store.copy(new, &at("from-bucket"));
    restores(&at("from-bucket"), &at("backup.key"), &at("new"));
    // The next one is not due: a restart looks, and makes none.
    assert!(daemon.terminate().success());
    let daemon = configured(dir.path(), &config);
    assert!(daemon.terminate().success());
    assert_eq!(store.names(), names);
}

/// What a daemon with this configuration logs of its failure, and that no key is in its log.
fn failure(dir: &Path, store: &S3, config: &str) -> String {
    let daemon = configured(dir, config);
    let line = wait_for("word of the failure", || {
        let log = daemon.log();
        let line = log.lines().find(|line| line.contains("no backup was made"));
        line.map(str::to_owned)
    });
    println!("{line}");
    let log = daemon.log();
    for file in [&store.secret_key_file, &store.access_key_file] {
        let key = fs::read_to_string(file).unwrap();
        assert!(!log.contains(key.trim()), "a key is in {log}");
    }
    assert!(!log.contains(WRONG), "a key is in {log}");
    assert!(daemon.terminate().success());
    line
}

const WRONG: &str = "wrong-secret-of-forty-characters-in-all.";

fn says(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "no {word:?} in {line}");
    }
}

#[test]
fn a_store_with_another_certificate_gets_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let authority = Authority::new(&at("tls"));
    let stranger = Authority::new(&at("stranger"));
    let Some(store) = S3::start(dir.path(), &authority, &[]) else {
        return;
    };
    let (recipient, _) = key();
    let keys = format!("secret_key_file = {:?}", store.secret_key_file);
    let trusting = |ca: &Path| {
        let more = format!("bucket = \"backups\"\n{keys}\nca_file = {ca:?}");
        bucket(&store, &recipient, &more)
    };
    let line = failure(dir.path(), &store, &trusting(&stranger.ca));
    let file = stranger.ca.to_str().unwrap();
    says(
        &line,
        &[&store.address, file, "not signed by", "backup.s3.ca_file"],
    );
    let more = format!("bucket = \"backups\"\n{keys}");
    let line = failure(dir.path(), &store, &bucket(&store, &recipient, &more));
    says(
        &line,
        &[&store.address, "this system trusts", "backup.s3.ca_file"],
    );
    let elsewhere = store.address.replace("127.0.0.1", "localhost");
    let config = trusting(&authority.ca).replace(&store.address, &elsewhere);
    let line = failure(dir.path(), &store, &config);
    says(
        &line,
        &[&elsewhere, "not valid for name", "backup.s3.endpoint"],
    );
    assert_eq!(store.names(), Vec::<String>::new());

    let over = Authority::over(&at("over"));
    let late = S3::start(&at("over"), &over, &[]).unwrap();
    let config = trusting(&over.ca).replace(&store.address, &late.address);
    let line = failure(dir.path(), &late, &config);
    says(&line, &["expired", "renew the store's certificate"]);
}

#[test]
fn what_a_bucket_refuses_is_told_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("wrong");
    fs::write(&wrong, WRONG).unwrap();
    let authority = Authority::new(&dir.path().join("tls"));
    let Some(mut store) = S3::start(dir.path(), &authority, &[]) else {
        return;
    };
    let (recipient, _) = key();
    let of = |store: &S3, name: &str, secret: &Path| {
        let ca = &authority.ca;
        let more = format!("bucket = \"{name}\"\nsecret_key_file = {secret:?}\nca_file = {ca:?}");
        bucket(store, &recipient, &more)
    };
    let line = failure(dir.path(), &store, &of(&store, "backups", &wrong));
    let remedy = "correct backup.s3.access_key_file, backup.s3.secret_key_file";
    says(&line, &[&store.address, "SignatureDoesNotMatch", remedy]);
    let right = store.secret_key_file.clone();
    let line = failure(dir.path(), &store, &of(&store, "nobodys", &right));
    says(
        &line,
        &[&store.address, "no bucket \"nobodys\"", "backup.s3.bucket"],
    );
    assert_eq!(store.names(), Vec::<String>::new());
    store.end();
    let line = failure(dir.path(), &store, &of(&store, "backups", &right));
    says(
        &line,
        &[
            "it cannot be reached: Connection refused",
            "backup.s3.endpoint",
        ],
    );
}

#[test]
fn a_directory_that_cannot_be_made_keeps_no_node_down() {
    let dir = tempfile::tempdir().unwrap();
    let (recipient, _) = key();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let config = format!(
        "[backup]\nrecipients = [\"{recipient}\"]\ndirectory = {:?}\n",
        file.join("backups")
    );
    let daemon = configured(dir.path(), &config);
    wait_for("the reason in the log", || {
        let log = daemon.log();
        log.contains("backup.directory: cannot use").then_some(())
    });
    assert!(daemon.terminate().success());
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
        (
            format!(
                "recipients = [\"{recipient}\"]\n[backup.s3]\n\
                 endpoint = \"https://me:hidden@x\"\nbucket = \"b\"\n{missing}"
            ),
            "backup.s3.endpoint: must not hold",
        ),
        (
            format!(
                "recipients = [\"{recipient}\"]\n[backup.s3]\nendpoint = \"https://x\"\n\
                 bucket = \"b\"\nca_file = {file:?}\n{missing}"
            ),
            "backup.s3.ca_file: there is no certificate",
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
        assert!(!error.contains("hidden"), "{error}");
    }
}
