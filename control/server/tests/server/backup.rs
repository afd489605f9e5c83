//! Backups of a running node, and what is restored from them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use control_pki::SealingKey;
use control_state::FEATURE_LEVEL;

use crate::cli::Cli;
use crate::daemon::{Daemon, program};

struct World {
    cli: Cli,
    daemon: Daemon,
    dir: tempfile::TempDir,
}

/// A node with something in it.
fn world() -> Option<World> {
    let dir = tempfile::tempdir().unwrap();
    let (cli, daemon) = Cli::fresh(dir.path())?;
    cli.create_acme();
    cli.ok(&["partition", "create", "lab"]);
    Some(World { cli, daemon, dir })
}

impl World {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn backup(&self, name: &str, flags: &[&str]) -> String {
        let file = self.path(name);
        let arguments = [&["cluster", "backup", file.as_str()], flags].concat();
        self.cli.ok(&arguments);
        file
    }
}

fn restore(file: &str, dir: &str, flags: &[&str]) -> Output {
    Command::new(program())
        .args(["restore", file, "--data-dir", dir])
        .args(flags)
        .output()
        .unwrap()
}

fn refused(output: &Output, dir: &str) -> String {
    assert!(!output.status.success(), "{output:?}");
    assert!(!Path::new(dir).exists(), "something was left in {dir}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mode(path: &str) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_backed_up_is_there_again() {
    let Some(world) = world() else { return };
    let file = world.backup("b1", &[]);
    let key = format!("{file}.key");
    assert_eq!((mode(&file), mode(&key)), (0o600, 0o600));
    let listed = world.cli.ok(&["cluster", "backup", &file, "--list"]);
    assert!(listed.contains("whole:       yes"), "{listed}");
    assert!(listed.contains("partition"), "{listed}");
    let json = world
        .cli
        .ok(&["cluster", "backup", &file, "--list", "-o", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["whole"], &json["objects"]["partition"]),
        (&true.into(), &1.into())
    );
    let again = world.cli.refused(&["cluster", "backup", &file]);
    assert!(again.contains("exists already"), "{again}");
    // What is in the state is not to be found in the file.
    let bytes = std::fs::read(&file).unwrap();
    assert!(!bytes.windows(4).any(|four| four == b"acme"));
    world.cli.ok(&["partition", "create", "too-late"]);

    let node = std::fs::read_to_string(world.path("data/NODE")).unwrap();
    assert!(world.daemon.terminate().success());
    let new = world.dir.path().join("data-new");
    let output = restore(&file, new.to_str().unwrap(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert_ne!(std::fs::read_to_string(new.join("NODE")).unwrap(), node);
    // It takes the place of the old directory, and the old tokens are still good.
    std::fs::rename(
        world.dir.path().join("data"),
        world.dir.path().join("data-old"),
    )
    .unwrap();
    std::fs::rename(&new, world.dir.path().join("data")).unwrap();
    let daemon = Daemon::start(world.dir.path());
    let partitions = world.cli.ok(&["get", "partition", "-o", "jsonpath={.id}"]);
    assert_eq!(partitions, "lab\n");
    assert!(world.cli.ok(&["get", "project"]).contains("web"));
    world.cli.ok(&["partition", "create", "after"]);
    drop(daemon);
    Daemon::start(world.dir.path());
}

#[test]
fn a_backup_that_is_not_one_changes_nothing() {
    let Some(world) = world() else { return };
    let file = world.backup("b1", &[]);
    let other = world.backup("b2", &[]);
    let dir = world.path("new");
    let keys = ["--identity", &format!("{other}.key")];
    let error = refused(&restore(&file, &dir, &keys), &dir);
    assert!(error.contains("the key does not open it"), "{error}");
    let moved = world.path("moved");
    std::fs::copy(&file, &moved).unwrap();
    let error = refused(&restore(&moved, &dir, &[]), &dir);
    assert!(error.contains("--identity KEYFILE"), "{error}");

    let key = format!("{file}.key");
    let keys = ["--identity", key.as_str()];
    let bytes = std::fs::read(&file).unwrap();
    let bad = world.path("bad");
    for (what, bytes) in [
        ("cut short", bytes[..bytes.len() - 100].to_vec()),
        (
            "no backup of metalmesh",
            b"PK something else, long enough for a head".to_vec(),
        ),
        ("damaged", [&bytes[..bytes.len() - 50], &[0; 50]].concat()),
    ] {
        std::fs::write(&bad, bytes).unwrap();
        let error = refused(&restore(&bad, &dir, &keys), &dir);
        assert!(error.contains(what), "{what}: {error}");
    }
    let text = String::from_utf8_lossy(&bytes[..1000]).into_owned();
    let head_end = text.match_indices('\n').nth(1).unwrap().0;
    let level = format!("\"feature_level\":{FEATURE_LEVEL}");
    for (field, other, what) in [
        ("\"format\":2", "\"format\":7", "it has format 7"),
        ("\"format\":2", "\"format\":1", "it has format 1"),
        (
            &level,
            "\"feature_level\":99",
            "of a cluster at feature level 99",
        ),
    ] {
        assert!(text[..head_end].contains(field), "{text}");
        let newer = text[..head_end].replace(field, other);
        let newer = [newer.as_bytes(), b"\n", &bytes[head_end + 1..]].concat();
        std::fs::write(&bad, newer).unwrap();
        let error = refused(&restore(&bad, &dir, &keys), &dir);
        assert!(error.contains(what), "{error}");
    }
    // A directory that is in use stays what it is.
    let data = world.path("data");
    let output = restore(&file, &data, &[]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("is in use"),
        "{output:?}"
    );
    assert!(world.cli.ok(&["get", "partition"]).contains("lab"));
}

#[test]
fn plain_and_for_others() {
    let Some(world) = world() else { return };
    let plain = world.backup("plain", &["--plain"]);
    assert!(!Path::new(&format!("{plain}.key")).exists());
    let dir = world.path("new");
    let error = refused(&restore(&plain, &dir, &[]), &dir);
    assert!(error.contains("--keys-of DIR"), "{error}");
    let wrong = world.path("wrong");
    std::fs::create_dir(&wrong).unwrap();
    std::fs::write(world.path("wrong/seal.key"), [7; 32]).unwrap();
    let own = world.path("own.key");
    let with_own = ["--keys-of", &wrong, "--sealing-key", &own];
    let error = refused(&restore(&plain, &dir, &with_own), &dir);
    assert!(error.contains("there is no data.key"), "{error}");
    let node_key = SealingKey::from_secret(&[7; 32]).unwrap();
    node_key
        .data_key(Path::new(&world.path("wrong/data.key")), true)
        .unwrap();
    let error = refused(&restore(&plain, &dir, &with_own), &dir);
    assert!(!Path::new(&own).exists(), "a key was left");
    assert!(error.contains("not those of this backup"), "{error}");
    let data = world.path("data");
    let output = restore(&plain, &dir, &["--keys-of", &data]);
    assert!(output.status.success(), "{output:?}");

    // For a key that was made before.
    let made = world.backup("made", &[]);
    let key = std::fs::read_to_string(format!("{made}.key")).unwrap();
    let recipient = key.lines().next().unwrap().rsplit(' ').next().unwrap();
    let other = world.backup("other", &["--recipient", recipient]);
    assert!(!Path::new(&format!("{other}.key")).exists());
    let dir = world.path("new2");
    let output = restore(&other, &dir, &["--identity", &format!("{made}.key")]);
    assert!(output.status.success(), "{output:?}");
    let refused = world.cli.refused(&[
        "cluster",
        "backup",
        &world.path("x"),
        "--recipient",
        "age1bad",
    ]);
    assert!(refused.contains("is no age recipient"), "{refused}");
    assert!(!Path::new(&world.path("x")).exists() && !Path::new(&world.path("x.partial")).exists());
    let token = [
        "token",
        "create",
        "--user",
        "acme",
        "--project-role",
        "web=owner",
    ];
    world
        .cli
        .ok(&[&token[..], &["--add-context", "acme"]].concat());
    let refused = world
        .cli
        .refused(&["--context", "acme", "cluster", "backup", &world.path("y")]);
    assert!(refused.contains("MM-1102"), "{refused}");
    assert!(!Path::new(&world.path("y.key")).exists());
}
