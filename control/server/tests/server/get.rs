//! `metalmesh get` against a real node: every kind, every format, and watching on through the
//! death of the node.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use crate::cli::Cli;
use crate::daemon::{Daemon, PATIENCE};

/// A `get --watch` that runs; killed when dropped.
pub(crate) struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    pub(crate) fn start(cli: &Cli, arguments: &[&str]) -> Self {
        let mut command = cli.command(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("the watch shows nothing")
    }

    /// Event and id of the next line of `-o json`.
    fn event(&self) -> (String, String) {
        let event: Value = serde_json::from_str(&self.line()).unwrap();
        let text = |name: &str| event[name].as_str().unwrap().to_owned();
        assert!(event["revision"].as_u64().unwrap() > 0);
        (text("event"), text("id"))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Arguments in the tenant's context.
fn as_acme<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--context", "acme"], more].concat()
}

/// All kinds, some by another name, and whose objects of them are asked for.
const KINDS: [(&str, &[&str]); 28] = [
    ("audit", &["-A"]),
    ("claim", &["-A"]),
    ("claims", &["-p", "web", "--context", "acme"]),
    ("components", &["-A"]),
    ("fsl", &["-A"]),
    ("images", &["-A"]),
    ("ip", &["-A"]),
    ("join-ticket", &["-A"]),
    ("lease", &["-A"]),
    ("machines", &["-A"]),
    ("network", &["-A"]),
    ("node-allocations", &["-A"]),
    ("partition", &["-A"]),
    ("policies", &["-A"]),
    ("pool-hosts", &["-A"]),
    ("pools", &["-A"]),
    ("project", &["-A"]),
    ("project-invites", &["-p", "web", "--context", "acme"]),
    ("project-labels", &["-A"]),
    ("quotas", &["-A"]),
    ("size", &["-A"]),
    ("size-image-constraints", &["-A"]),
    ("size-reservations", &["-p", "web", "--context", "acme"]),
    ("switches", &["-A"]),
    ("task", &["-A"]),
    ("tenant", &["-A"]),
    ("tenant-invites", &["--tenant", "acme", "--context", "acme"]),
    ("token", &["-A"]),
];

/// Every format says the same of a kind, and its watch begins.
fn shows(cli: &Cli, kind: &str, whose: &[&str]) {
    let get = |format: &str| cli.ok(&[&["get", kind, "-o", format], whose].concat());
    let json: Value = serde_json::from_str(&get("json")).unwrap();
    let count = json.as_array().unwrap().len();
    assert_eq!(get("table").lines().count(), count + 1, "{kind}");
    let wide = get("wide");
    let titles = wide.lines().next().unwrap();
    assert!(titles.ends_with("REVISION"), "{kind}: {wide}");
    assert_eq!(
        get("yaml").matches("\n  revision: ").count(),
        count,
        "{kind}"
    );
    let revisions: Vec<String> = get("jsonpath={.revision}")
        .lines()
        .map(str::to_owned)
        .collect();
    let expected = json.as_array().unwrap().iter();
    let expected: Vec<String> = expected.map(|one| one["revision"].to_string()).collect();
    assert_eq!(revisions, expected, "{kind}");
    let watching = Watching::start(cli, &[&["get", kind, "--watch"], whose].concat());
    assert!(watching.line().starts_with("EVENT    "), "{kind}");
    for _ in 0..count {
        assert!(watching.line().starts_with("present  "), "{kind}");
    }
}

/// What a tenant is kept, allowed and joined by.
fn shared(cli: &Cli) {
    let size = ["size", "create", "small", "--constraint", "cores=1-4"];
    cli.ok(&[&size[..], &["--constraint", "memory=1Gi-4Gi"]].concat());
    let kept = ["size", "reservation", "create", "kept", "--for", "web"];
    cli.ok(&[
        &kept[..],
        &["--size", "small", "--partition", "lab", "--amount", "1"],
    ]
    .concat());
    cli.ok(&["quota", "set", "--of-tenant", "acme", "--machines", "3"]);
    let owner = ["--context", "acme"];
    cli.ok(&[&["project", "invite", "create", "web"][..], &owner].concat());
    cli.ok(&[&["tenant", "invite", "create", "acme"][..], &owner].concat());
    for (kind, whose) in [
        ("project-invite", ["-p", "web"]),
        ("tenant-invite", ["--tenant", "acme"]),
        ("quota", ["-p", "web"]),
        ("quota", ["--tenant", "acme"]),
        ("size-reservation", ["-p", "web"]),
    ] {
        let get = ["get", kind, "-o", "json"];
        let there: Value =
            serde_json::from_str(&cli.ok(&[&get[..], &whose, &owner].concat())).unwrap();
        assert_eq!(there.as_array().unwrap().len(), 1, "{kind}: {there}");
        assert!(
            there[0]["secret"].as_str().unwrap_or_default().is_empty(),
            "{there}"
        );
    }
    let quota = cli.ok(&["get", "quota", "acme", "-A"]);
    assert!(
        quota.contains("tenant acme") && quota.contains("0/3"),
        "{quota}"
    );
}

fn owned(event: &str, id: &str) -> (String, String) {
    (event.to_owned(), id.to_owned())
}

#[test]
fn every_kind_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.create_acme();
    cli.ok(&["partition", "create", "lab", "--dns", "10.0.0.53"]);
    let token = ["token", "create", "--user", "acme"];
    let roles = ["--project-role", "web=owner", "--tenant-role", "acme=owner"];
    let context = ["--add-context", "acme"];
    cli.ok(&[&token[..], &roles, &context].concat());
    shared(&cli);
    for (kind, whose) in KINDS {
        shows(&cli, kind, whose);
    }
    assert!(cli.ok(&["get", "partitions"]).contains("lab"));
    let wide = cli.ok(&["get", "partition", "-o", "wide"]);
    assert!(
        wide.contains("REVISION") && wide.contains("10.0.0.53"),
        "{wide}"
    );
    let one: Value =
        serde_json::from_str(&cli.ok(&["get", "partition", "lab", "-o", "json"])).unwrap();
    assert!(one["revision"].as_u64().unwrap() > 0, "{one}");
    assert!(
        cli.ok(&["get", "partition", "lab", "-o", "yaml"])
            .contains("id: lab")
    );
    let picked = [
        "get",
        "partition",
        "-o",
        "jsonpath={.id} {.dnsServers[0].ip}",
    ];
    assert_eq!(cli.ok(&picked), "lab 10.0.0.53\n");
    let refused = cli.refused(&["get", "partition", "nowhere"]);
    assert!(
        refused.contains("there is no partition \"nowhere\""),
        "{refused}"
    );
    let refused = cli.refused(&["get", "secrets"]);
    assert!(
        refused.contains("not a kind of objects; the kinds are"),
        "{refused}"
    );
    let refused = cli.refused(&["get", "partition", "-o", "jsonpath={.id"]);
    assert!(refused.contains("closing brace"), "{refused}");

    // The tenant sees its own and is told plainly what it may not see.
    assert!(
        cli.ok(&as_acme(&["get", "project", "--tenant", "acme"]))
            .contains("web")
    );
    assert!(
        cli.ok(&as_acme(&["get", "machine", "-p", "web"]))
            .starts_with("ID")
    );
    let audits = cli.ok(&as_acme(&["get", "audit", "--tenant", "acme"]));
    assert!(audits.starts_with("TIME"), "{audits}");
    let refused = cli.refused(&as_acme(&["get", "switch"]));
    assert!(refused.contains("MM-1102"), "{refused}");
    let refused = cli.refused(&as_acme(&["get", "project", "--tenant", "metal-stack"]));
    assert!(refused.contains("MM-1001"), "{refused}");
}

#[test]
fn a_reader_that_went_away_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, _daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["partition", "create", "lab"]);
    for format in ["table", "wide", "json", "yaml", "jsonpath={.id}"] {
        for more in [&[][..], &["--watch"]] {
            let arguments = [&["get", "partition", "-o", format], more].concat();
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let output = cli.command(&arguments).stdout(writer).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(141), "{arguments:?}: {error}");
            assert_eq!(error, "", "{arguments:?}");
        }
    }
}

#[test]
fn a_watch_goes_on_through_the_death_of_the_node() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, mut daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    let address = daemon.api.trim_start_matches("http://").to_owned();
    cli.ok(&["partition", "create", "first"]);
    let watching = Watching::start(&cli, &["get", "partition", "--watch", "-o", "json"]);
    assert_eq!(watching.event(), owned("present", "first"));
    let table = Watching::start(&cli, &["get", "partition", "--watch-only"]);
    assert!(table.line().starts_with("EVENT    ID"), "titles first");
    cli.ok(&["partition", "create", "second"]);
    assert_eq!(watching.event(), owned("created", "second"));
    assert!(table.line().starts_with("created  second"));
    for round in 0..3 {
        let before = format!("before-{round}");
        cli.ok(&["partition", "create", &before]);
        daemon.kill();
        daemon = Daemon::start_at(dir.path(), &address, &[]);
        let after = format!("after-{round}");
        cli.ok(&["partition", "create", &after]);
        assert_eq!(watching.event(), owned("created", &before));
        assert_eq!(watching.event(), owned("created", &after));
    }
    drop(daemon);
}
