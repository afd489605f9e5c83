//! Firewalls come into a real headscale and leave it, whatever is away meanwhile.

use std::fs;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::cli::{Cli, metalmesh};
use crate::daemon::{Daemon, PATIENCE};
use crate::get::Watching;
use crate::headscale::{Headscale, free_address};
use crate::python;

/// A firewall's agents and its project, played with the published client.
struct Story {
    child: Child,
    says: ChildStdin,
    hears: Lines<BufReader<ChildStdout>>,
    project: String,
}

impl Story {
    fn begin(daemon: &Daemon) -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/firewall.py");
        let mut child = Command::new(python::client()?)
            .arg(script)
            .arg(&daemon.api)
            .env("ADMIN_TOKEN", daemon.admin_token())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = child.stdin.take().unwrap();
        let hears = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut story = Self {
            child,
            says,
            hears,
            project: String::new(),
        };
        story.project = story.heard()["project"].as_str().unwrap().to_owned();
        Some(story)
    }

    fn heard(&mut self) -> Value {
        let line = self.hears.next().expect("the script ended").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn does(&mut self, what: &str) -> Value {
        writeln!(self.says, "{what}").unwrap();
        self.heard()
    }

    /// Repeats until it is as wanted.
    fn until(&mut self, what: &str, is_good: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let answer = self.does(what);
            if is_good(&answer) {
                return answer;
            }
            assert!(Instant::now() < until, "{what}: {answer}");
        }
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// The files below that hold a text as it is.
fn holding(dir: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else {
            // RocksDB may have removed it by now.
            let bytes = fs::read(&path).unwrap_or_default();
            let mut places = bytes.windows(text.len());
            if places.any(|place| place == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}

/// An administrator who watches machines, where the command line is built.
fn watching(daemon: &Daemon) -> Option<Watching> {
    let cli = Cli {
        program: metalmesh()?,
        config: daemon.config().to_owned(),
    };
    let flags = ["get", "machine", "--watch", "-A", "-o", "json"];
    Some(Watching::start(&cli, &flags))
}

#[test]
fn a_firewall_is_in_the_vpn_as_long_as_it_is_allocated() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut headscale) = Headscale::start(dir.path()) else {
        return;
    };
    let config = headscale.section(None);
    let flags = ["--config", config.to_str().unwrap()];
    let api = free_address();
    let daemon = Daemon::start_at(dir.path(), &api, &flags);
    let Some(mut story) = Story::begin(&daemon) else {
        return;
    };
    // Nothing is allocated while nobody can make its key.
    headscale.down();
    let refused = story.does("allocate");
    assert!(
        text(&refused, "message").contains("cannot be reached"),
        "{refused}"
    );
    headscale.up();

    let shown = story.does("allocate");
    assert_eq!(text(&shown, "controlPlaneAddress"), headscale.url());
    assert_eq!(text(&shown, "authKey"), "", "for the machine alone");
    let order = story.does("order");
    let key = text(&order, "authKey").to_owned();
    assert!(!key.is_empty() && !daemon.log().contains(&key), "{order}");
    let data = dir.path().join("data");
    assert!(!holding(&data, &headscale.url()).is_empty(), "it is there");
    assert_eq!(holding(&data, &key), [] as [PathBuf; 0], "it is sealed");
    let watching = watching(&daemon);
    let node = headscale.node("fw-1", &key).unwrap();
    let other = headscale.node("fw-2", &key).err();
    assert!(other.is_some(), "a key is good for one node");
    let shown = story.until("show", |it| it["connected"] == true);
    assert!(shown["ips"][0].as_str().unwrap().starts_with("100.64."));
    assert_eq!(headscale.nodes(), ["fw-1"]);
    if let Some(watching) = watching {
        // Whoever watches machines hears of it too.
        while !watching.line().contains("\"connected\":true") {}
    }

    // It is released while headscale is away, and control is killed.
    headscale.down();
    drop(node);
    story.does("release");
    daemon.kill();
    headscale.up();
    let daemon = Daemon::start_at(dir.path(), &api, &flags);
    let until = Instant::now() + PATIENCE;
    while !headscale.nodes().is_empty() {
        assert!(Instant::now() < until, "{}", daemon.log());
    }
    let ended = headscale.node("fw-3", &key).err().unwrap();
    assert!(ended.starts_with("refused"), "{ended}");
}

#[test]
fn an_operator_comes_into_the_vpn_by_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = metalmesh() else { return };
    let Some(mut headscale) = Headscale::start(dir.path()) else {
        return;
    };
    let config = headscale.section(None);
    let flags = ["--config", config.to_str().unwrap()];
    let daemon = Daemon::start_at(dir.path(), "127.0.0.1:0", &flags);
    let cli = Cli {
        program,
        config: daemon.config().to_owned(),
    };
    cli.create_acme();
    cli.ok(&["project", "create", "shop", "--tenant", "acme"]);
    let key = |project: &str, more: &[&str]| {
        let flags = ["vpn", "auth-key", "--reason", "look at the firewall"];
        let flags = [&flags[..], &["-o", "json", "--project", project], more].concat();
        let made: Value = serde_json::from_str(&cli.ok(&flags)).unwrap();
        let made = made.get(0).cloned().unwrap_or(made);
        assert_eq!(text(&made, "address"), headscale.url(), "{made}");
        text(&made, "authKey").to_owned()
    };
    assert!(cli.ok(&["vpn", "ls", "--project", "web"]).starts_with("ID"));
    let first = key("web", &["--reusable", "--ephemeral"]);
    let _nodes = ["one", "two"].map(|name| headscale.node(name, &first).unwrap());
    let _other = headscale.node("three", &key("shop", &[])).unwrap();
    let web = cli.ok(&["vpn", "ls", "--project", "web"]);
    assert!(web.contains("one") && web.contains("two"), "{web}");
    assert!(!web.contains("three"), "{web}");
    assert!(cli.ok(&["vpn", "ls"]).contains("three"));
    let short = key("web", &["--reusable", "--expires", "1s"]);
    let until = Instant::now() + PATIENCE;
    let refused = loop {
        match headscale.node("late", &short) {
            Err(refused) => break refused,
            Ok(_early) => assert!(Instant::now() < until, "the key does not end"),
        }
    };
    assert!(refused.contains("expired"), "{refused}");
    let trail = cli.ok(&["audit", "ls", "--method", "VPNService/AuthKey"]);
    assert!(!trail.contains(&first), "{trail}");

    headscale.down();
    let error = cli.refused(&["vpn", "ls"]);
    assert!(
        error.contains("MM-1902") && error.contains("cannot be reached"),
        "{error}"
    );
    headscale.up();
    drop(daemon);
    let config = headscale.section(Some("not-a-key"));
    let flags = ["--config", config.to_str().unwrap()];
    let daemon = Daemon::start_at(dir.path(), "127.0.0.1:0", &flags);
    let cli = Cli {
        config: daemon.config().to_owned(),
        ..cli
    };
    let error = cli.refused(&["vpn", "ls"]);
    assert!(error.contains("vpn.api_key_file"), "{error}");
    assert!(!error.contains("not-a-key"), "{error}");
    let health = cli.ok(&["health"]);
    let why = "its control server refuses the API key";
    assert!(health.contains("vpn") && health.contains(why), "{health}");
}
