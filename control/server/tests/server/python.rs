//! The published Python client drives the scenario and every method, refused and served: three
//! protocols, two codecs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::daemon::Daemon;
pub(crate) use crate::venv::environment;

/// The client that the contract was published with.
const PACKAGE: &str = "metal-stack-api==0.8.4";

/// The Python that has the published client, or none and why.
pub(crate) fn client() -> Option<PathBuf> {
    environment(PACKAGE)
        .inspect_err(|reason| println!("SKIPPED: {PACKAGE} cannot be installed: {reason}"))
        .ok()
}

/// Runs a script with the published client against a fresh node; what it prints, or none where the
/// client cannot be had.
fn published(script: &str) -> Option<String> {
    let python = client()?;
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server");
    let output = Command::new(python)
        // What it compiles is not left among the sources.
        .arg("-B")
        .arg(scripts.join(script))
        .arg(&daemon.api)
        .env("ADMIN_TOKEN", daemon.admin_token())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{error}");
    Some(text)
}

#[test]
fn the_published_client_in_all_protocols() {
    published("published_client.py");
}

#[test]
fn the_published_client_is_answered_alike_by_every_method() {
    if let Some(text) = published("every_method.py") {
        assert!(text.contains("152 methods, 6 combinations"), "{text}");
    }
}

#[test]
fn every_method_does_its_work_for_the_published_client() {
    if let Some(text) = published("every_method_served.py") {
        let all = text.matches("150 of 152 methods served").count();
        assert_eq!(all, 6, "{text}");
    }
}

#[test]
fn the_contracts_properties_hold_for_the_published_client() {
    published("contract_properties.py");
}
