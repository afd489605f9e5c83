//! Self-update: the real program replaces itself by what control names, or does not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use agents_kit::StateDir;
use agents_kit::state_dir::StoredSession;
use proto_mesh::{AgentRelease, UpdateReport};
use proto_release::ReleaseSigner;

use crate::config;
use crate::control::{Control, eventually};
use crate::release_server::{AUTHORITY, ReleaseServer};
use crate::supervised::{PROGRAM, Supervised};

/// Name of the agent in manifests.
const NAME: &str = "metalmesh-bmc";
/// A program that is refused before it is fetched.
const REFUSED: &[u8] = b"#!/bin/sh\n";

/// Writes the configuration of an agent without BMCs that trusts a key, and its identity.
fn install(control: &Control, dir: &Path, signer: &ReleaseSigner) {
    let section = format!(
        "[self_update]\nkeys = \"release-keys\"\nca_certificate = \"{AUTHORITY}\"\n\
         local_prefixes = [\"127.0.0.0/8\"]\nspread_seconds = 0\n"
    );
    config(dir, &section);
    write_keys(dir, &format!("{}\n", signer.public()));
    let session = StoredSession {
        credential: control.program.clone(),
        control: vec![control.address.clone()],
        ticket_id: String::new(),
    };
    let state = StateDir::open(&dir.join("state")).unwrap();
    state.store(&session).unwrap();
}

fn write_keys(dir: &Path, text: &str) {
    let path = dir.join("release-keys");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Waits for a report of the program.
async fn reported(control: &Control, what: &str, is_it: impl Fn(&UpdateReport) -> bool) {
    let mut last = None;
    eventually(what, || {
        last = control.program_report();
        last.as_ref().is_some_and(&is_it)
    })
    .await;
}

/// Releases that are not signed for this agent, or not for this moment, with the begin of the reason.
fn refused_releases(
    server: &ReleaseServer,
    signer: &ReleaseSigner,
) -> [(AgentRelease, &'static str); 4] {
    let stranger = ReleaseSigner::generate().unwrap();
    [
        (
            server.publish(&stranger, NAME, "0.3.0", REFUSED),
            "key: the release is signed with the key",
        ),
        (
            server.publish(signer, "metalmesh-firewall", "0.3.1", REFUSED),
            "name: it is a release of metalmesh-firewall, and not of metalmesh-bmc",
        ),
        (
            server.publish(signer, NAME, "0.1.5", REFUSED),
            "downgrade: 0.1.5 is older than 0.2.0",
        ),
        (
            AgentRelease {
                head_digest: format!("sha256:{}", "ab".repeat(32)),
                ..server.publish(signer, NAME, "0.4.0", REFUSED)
            },
            "release.head_digest: the release there has another signed head",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_reads_fewer_bmcs_than_the_one_before_it_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let control = Control::start();
    fs::write(dir.path().join(AUTHORITY), "").unwrap();
    install(&control, dir.path(), &ReleaseSigner::generate().unwrap());
    let state = dir.path().join("state");
    let before = br#"{"version": "0.0.1", "reached": 3}"#;
    let files = StateDir::open(&state).unwrap();
    files.write("reach.json", before).unwrap();
    let agent = Supervised::start(&dir.path().join("bmc.toml"), &state);
    reported(&control, "the ailment", |report| {
        report.ailment == "it reads 0 BMCs, and the program before it read 3"
    })
    .await;
    drop(agent);
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_replaces_itself_by_a_signed_release_of_its_own_kind() {
    let dir = tempfile::tempdir().unwrap();
    let published = dir.path().join("published");
    fs::create_dir(&published).unwrap();
    let signer = ReleaseSigner::generate().unwrap();
    let control = Control::start();
    let server = ReleaseServer::start(&published).await;
    fs::copy(published.join(AUTHORITY), dir.path().join(AUTHORITY)).unwrap();
    install(&control, dir.path(), &signer);
    let state = dir.path().join("state");
    let agent = Supervised::start(&dir.path().join("bmc.toml"), &state);
    reported(&control, "the first program", |report| {
        report.phase == "nothing_wanted" && report.ailment.is_empty()
    })
    .await;

    let program = fs::read(PROGRAM).unwrap();
    let new = server.publish(&signer, NAME, "0.2.0", &program);
    control.name_release(Some(new.clone()));
    reported(&control, "the new program", |report| {
        report.version == "0.2.0"
            && report.phase == "current"
            && report.wanted == "0.2.0"
            && report.head_digest == new.head_digest
    })
    .await;
    assert_eq!(agent.codes(), [Some(75)]);
    let running = agent.program();
    assert!(running.starts_with(state.join("programs")), "{running:?}");

    // What is not signed for it, and for this moment, never runs.
    let refused = refused_releases(&server, &signer);
    for (release, begin) in refused {
        let version = release.version.clone();
        control.name_release(Some(release));
        reported(&control, begin, |report| {
            report.wanted == version && report.phase == "failed" && report.error.starts_with(begin)
        })
        .await;
    }
    assert_eq!(agent.codes(), [Some(75)]);
    assert_eq!(agent.program(), running);

    // Without the key on the host nothing is replaced at all.
    write_keys(dir.path(), "# none\n");
    control.name_release(Some(server.publish(&signer, NAME, "0.5.0", REFUSED)));
    reported(&control, "no key", |report| {
        report.phase == "off"
            && report
                .error
                .starts_with("keys: no key of releases is trusted")
    })
    .await;
    assert_eq!(agent.codes(), [Some(75)]);
    drop(agent);
    control.stop().await;
}
