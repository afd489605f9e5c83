//! The published Python client drives the scenario and every method, refused and served, in three
//! protocols and two codecs; and holds updates, queries and requests against rules that are read
//! from the contract.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::daemon::Daemon;
use crate::headscale::{Headscale, Node};
use crate::wall_clock::WallClock;

pub(crate) use crate::venv::environment;

/// The client that the contract was published with.
const PACKAGE: &str = "metal-stack-api==0.8.4";

/// The Python that has the published client, or none and why.
pub(crate) fn client() -> Option<PathBuf> {
    environment(PACKAGE)
        .inspect_err(|reason| println!("SKIPPED: {PACKAGE} cannot be installed: {reason}"))
        .ok()
}

/// A script with the published client against a node, as its administrator.
fn command(python: &Path, script: &str, daemon: &Daemon) -> Command {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    let mut command = Command::new(python);
    command
        // What it compiles is not left among the sources.
        .arg("-B")
        .arg(scripts.join(script))
        .arg(&daemon.api)
        .env("ADMIN_TOKEN", daemon.admin_token());
    command
}

/// Runs a script with the published client against a fresh node; what it prints, or none where the
/// client cannot be had.
fn published(script: &str) -> Option<String> {
    let python = client()?;
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    Some(printed(&mut command(&python, script, &daemon)))
}

/// Runs a script that has to succeed; what it prints.
pub(crate) fn printed(script: &mut Command) -> String {
    let output = script.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    text
}

/// The numbers of a script's summary, its last line, by what stands after each: `12 filters, 3
/// pages` has two.
pub(crate) fn counts(text: &str) -> BTreeMap<&str, usize> {
    let summary = text.lines().next_back().unwrap_or_default();
    let count = |part: &str| part.split(' ').next().and_then(|count| count.parse().ok());
    let counts = summary.split(", ").filter_map(|part| {
        let number: usize = count(part)?;
        Some((part.split_once(' ')?.1, number))
    });
    counts.collect()
}

/// Runs a script and compares its summary with the least that it has to count, so that a script
/// that tries less fails.
fn published_counts(script: &str, least: &[(&str, usize)]) {
    let Some(text) = published(script) else {
        return;
    };
    let found = counts(&text);
    for (name, least) in least {
        let count = found.get(name).copied().unwrap_or_default();
        assert!(count >= *least, "{count} {name}, {least} expected:\n{text}");
    }
}

#[test]
fn the_published_client_in_all_protocols() {
    published_counts("published_client.py", &[("combinations served", 6)]);
}

#[test]
fn the_published_client_is_answered_alike_by_every_method() {
    published_counts(
        "every_method.py",
        &[
            ("methods", 152),
            ("combinations", 6),
            ("answered to the admin", 40),
        ],
    );
}

#[test]
fn every_method_does_its_work_for_the_published_client() {
    published_counts(
        "every_method_served.py",
        &[
            ("methods", 152),
            ("combinations", 6),
            ("methods served in each", 150),
        ],
    );
}

#[test]
fn what_published_clients_found_is_refused_as_it_should_be() {
    published_counts(
        "refusals.py",
        &[("rows", 92), ("calls refused", 75), ("calls accepted", 17)],
    );
}

#[test]
fn what_published_clients_found_is_answered_as_it_should_be() {
    published_counts("answers.py", &[("stories", 10)]);
}

#[test]
fn a_machine_that_falls_silent_is_revived_as_often_as_it_comes_back() {
    let Some(python) = client() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(clock) = WallClock::make(dir.path()) else {
        return;
    };
    let daemon = Daemon::start_by(&clock, dir.path());
    let text = printed(command(&python, "revival.py", &daemon).arg(&clock.ahead));
    let found = counts(&text);
    assert_eq!(found.get("revivals").copied(), Some(6), "{text}");
}

/// The two methods that the others' node has no VPN for.
#[test]
fn the_vpn_is_served_to_the_published_client() {
    let Some(python) = client() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(headscale) = Headscale::start(dir.path()) else {
        return;
    };
    let config = headscale.section(None);
    let flags = ["--config", config.to_str().unwrap()];
    let daemon = Daemon::start_at(dir.path(), "127.0.0.1:0", &flags);
    let mut child = command(&python, "vpn_methods.py", &daemon)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.next().expect("the script ended").unwrap();
    let made: Value = serde_json::from_str(&line).unwrap();
    let keys = made["keys"].as_array().unwrap();
    let enter = |(at, key): (usize, &Value)| {
        let name = format!("node-{at}");
        headscale.node(&name, key.as_str().unwrap()).unwrap()
    };
    let _nodes: Vec<Node> = keys.iter().enumerate().map(enter).collect();
    writeln!(child.stdin.take().unwrap(), "in").unwrap();
    let summary = lines.map_while(Result::ok).last().unwrap_or_default();
    assert!(child.wait().unwrap().success(), "{summary}");
    let found = counts(&summary);
    for (name, count) in [("methods of the VPN", 2), ("combinations", 6), ("nodes", 6)] {
        assert_eq!(found.get(name), Some(&count), "{summary}");
    }
}

#[test]
fn every_update_changes_what_it_says() {
    published_counts(
        "update_properties.py",
        &[
            ("objects", 50),
            ("fields", 76),
            ("updates that change nothing", 290),
            ("changes made", 440),
            ("changes refused", 390),
            ("kinds refused to owners", 8),
        ],
    );
}

#[test]
fn every_query_finds_what_a_plain_filter_finds() {
    published_counts(
        "list_properties.py",
        &[
            ("methods that list", 29),
            ("query fields", 142),
            ("fields that find something", 127),
            ("filters", 1600),
            ("empty filters", 150),
            ("entries that Get shows", 380),
            ("pages", 5),
        ],
    );
}

#[test]
fn every_request_may_be_written_otherwise() {
    published_counts(
        "request_properties.py",
        &[
            ("methods of 152", 146),
            ("null or empty fields", 1300),
            ("fields of 752", 590),
            ("spellings accepted", 140),
            ("spellings refused", 200),
            ("fields that ignore zero", 6),
        ],
    );
}
