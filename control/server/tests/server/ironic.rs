//! Unchanged clients of Ironic against a real node: every command of the command line, the SDK,
//! metalsmith and each way to authenticate. Ironic's own cases of access control, random requests,
//! documented requests with mistakes in them, and what its security advisories were about. Machines
//! are simulated by the calls of their agents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::daemon::Daemon;
use crate::python::{counts, printed};
use crate::venv::environment_with;

/// The clients of Ironic 39.0.0.
const CLIENTS: [&str; 3] = [
    "python-ironicclient==6.3.0",
    "openstacksdk==4.22.0",
    "metalsmith==2.5.0",
];
/// Ironic itself, for the cases in its tests: without what it needs to run.
const CASES: [&str; 2] = ["--no-deps", "ironic==39.0.0"];

/// A node that serves Ironic's API, with its data in `dir`.
pub(crate) fn daemon(dir: &Path, section: &str) -> Daemon {
    let config = dir.join("ironic.toml");
    let text = format!("[ironic]\nlisten = \"127.0.0.1:0\"\n{section}");
    fs::write(&config, text).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    Daemon::start_at(dir, "127.0.0.1:0", &flags)
}

/// The Python that has the clients, or none and why.
pub(crate) fn clients() -> Option<PathBuf> {
    environment_with(&[&CLIENTS, &CASES])
        .inspect_err(|reason| println!("SKIPPED: Ironic's clients cannot be installed: {reason}"))
        .ok()
}

/// Runs a script against a fresh node and compares its summary with the least that it has to count,
/// so that a script that tries less fails.
fn runs(script: &str, least: &[(&str, usize)]) {
    if let Some(python) = clients() {
        runs_with(&python, script, least);
    }
}

/// The same with a Python of one's own: not every script needs the clients.
fn runs_with(python: &Path, script: &str, least: &[(&str, usize)]) {
    let dir = tempfile::tempdir().unwrap();
    let daemon = daemon(dir.path(), "");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let mut command = Command::new(python);
    command
        // No compiled files are left among the sources.
        .arg("-B")
        .arg(scripts.join(script))
        .env("METALMESH_API", &daemon.api)
        .env("IRONIC_URL", daemon.ironic.as_ref().unwrap())
        .env("ADMIN_TOKEN", daemon.admin_token())
        // The clients remember versions of servers in the home directory.
        .env("HOME", dir.path());
    let text = printed(&mut command);
    let found = counts(&text);
    for (name, least) in least {
        let count = found.get(name).copied().unwrap_or_default();
        assert!(count >= *least, "{count} {name}, {least} expected:\n{text}");
    }
}

#[test]
fn every_command_of_ironics_command_line() {
    runs("ironic_commands.py", &[("commands", 118), ("runs", 140)]);
}

#[test]
fn the_sdk_of_openstack() {
    runs("ironic_sdk.py", &[("steps", 37)]);
}

#[test]
fn metalsmith_deploys_and_gives_back() {
    runs("ironic_metalsmith.py", &[("deployments", 2)]);
}

#[test]
fn each_way_to_authenticate_has_its_scope() {
    let ways = [("ways in", 13), ("ways refused", 14)];
    runs("ironic_identity.py", &ways);
}

#[test]
fn ironics_own_cases_of_access_control() {
    let cases = [("cases of projects", 450), ("cases of the site", 280)];
    runs("ironic_rbac.py", &cases);
}

#[test]
fn random_requests_find_no_fault() {
    runs("ironic_random.py", &[("requests", 3000), ("served", 100)]);
}

#[test]
fn documented_requests_with_mistakes_find_no_fault() {
    let least = [("mutants", 1400), ("served", 60), ("compared", 600)];
    runs_with(Path::new("python3"), "ironic_mutants.py", &least);
}

#[test]
fn advisories_about_ironic_do_not_apply() {
    runs("ironic_advisories.py", &[("attempts", 50)]);
}
