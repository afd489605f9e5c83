//! User stories, word for word, against a running metalmeshd: those of Metal3's HostClaim proposal, and
//! Ironic's guide to multi-tenancy. Each step of a script has the sentence that it proves above it;
//! `docs/reference/stories.md` lists all of them.

use std::path::Path;
use std::process::Command;

use crate::cli::metalmesh;
use crate::daemon::Daemon;
use crate::ironic;
use crate::python::{counts, printed};

/// A script of a story against a node, as its administrator.
fn script(python: &Path, name: &str, daemon: &Daemon) -> Command {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/stories");
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance");
    let mut command = Command::new(python);
    command
        // No compiled files are left among the sources.
        .arg("-B")
        .arg(tests.join(name))
        .env("PYTHONPATH", shared)
        .env("METALMESH_API", &daemon.api)
        .env("ADMIN_TOKEN", daemon.admin_token());
    command
}

/// Runs a script, which has to tell so many sentences: a story that was cut short fails.
fn tells(command: &mut Command, sentences: usize) {
    let text = printed(command);
    assert_eq!(
        counts(&text).get("sentences"),
        Some(&sentences),
        "another number of sentences:\n{text}"
    );
}

/// A story of HostClaim, by the command line and the API of projects.
fn host_claim(name: &str, sentences: usize) {
    let Some(program) = metalmesh() else { return };
    let python = Path::new("python3");
    if let Err(error) = Command::new(python).arg("--version").output() {
        println!("SKIPPED: python3 is missing: {error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let mut command = script(python, name, &daemon);
    tells(command.env("METALMESH", program), sentences);
}

/// A story of Ironic's guide, by its published clients. `section` is added to `[ironic]`.
fn ironic_guide(name: &str, section: &str, sentences: usize) {
    let Some(python) = ironic::clients() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let daemon = ironic::daemon(dir.path(), section);
    let mut command = script(&python, name, &daemon);
    command
        .env("IRONIC_URL", daemon.ironic.as_ref().unwrap())
        // The clients remember versions of servers in the home directory.
        .env("HOME", dir.path());
    tells(&mut command, sentences);
}

/// The settings for a policy file of the guide, word for word: its rules name no scope, so that they are
/// dangerous today.
fn policy_file(name: &str) -> String {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oslo/tests/data");
    let path = files.join(name);
    let path = path.to_str().unwrap();
    format!("policy_file = {path:?}\nallow_dangerous = [\"all\"]\n")
}

#[test]
fn hostclaim_a_simple_workload() {
    host_claim("hostclaim_workload.py", 9);
}

#[test]
fn hostclaim_the_administrator_of_the_servers() {
    host_claim("hostclaim_servers.py", 4);
}

#[test]
fn hostclaim_multi_tenancy() {
    host_claim("hostclaim_tenants.py", 7);
}

#[test]
fn hostclaim_forgery() {
    host_claim("hostclaim_forgery.py", 6);
}

#[test]
fn ironic_owner_and_lessee() {
    ironic_guide("guide_tenancy.py", "", 6);
}

#[test]
fn ironic_policy() {
    let section = policy_file("guide-sections.yaml");
    ironic_guide("guide_policy.py", &section, 5);
}

#[test]
fn ironic_allocations() {
    ironic_guide("guide_allocations.py", "", 3);
}

#[test]
fn ironic_deployment_by_metalsmith() {
    let section = policy_file("guide-metalsmith.yaml");
    ironic_guide("guide_deployment.py", &section, 3);
}
