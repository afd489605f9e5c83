//! Self-update: the real program replaces itself by what control names, or does not.

use std::fs;
use std::path::Path;

use agents_kit::StateDir;
use agents_kit::state_dir::StoredSession;
use proto_mesh::AgentRelease;
use proto_release::ReleaseSigner;
use tempfile::TempDir;

use crate::config;
use crate::control::Control;
use crate::replacing::{AUTHORITY, ReleaseServer, Story, Supervised, install_keys, section};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_metalmesh-bmc");
/// Name of the agent in manifests.
const NAME: &str = "metalmesh-bmc";
/// A program that is refused before it is fetched.
const REFUSED: &[u8] = b"#!/bin/sh\n";

/// An agent's host, its control, and a server of releases.
struct Stage {
    dir: TempDir,
    control: Control,
    server: ReleaseServer,
    signer: ReleaseSigner,
    state: StateDir,
}

impl Stage {
    async fn set_up() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let published = dir.path().join("published");
        fs::create_dir(&published).unwrap();
        let signer = ReleaseSigner::generate().unwrap();
        let control = Control::start();
        let server = ReleaseServer::start(&published).await;
        fs::copy(published.join(AUTHORITY), dir.path().join(AUTHORITY)).unwrap();
        let state = install(&control, dir.path(), &signer);
        Self {
            dir,
            control,
            server,
            signer,
            state,
        }
    }

    fn agent(&self) -> Supervised {
        Supervised::start(
            PROGRAM,
            &self.dir.path().join("bmc.toml"),
            self.state.path(),
        )
    }

    fn story<'a>(&'a self, agent: &'a Supervised) -> Story<'a> {
        Story {
            name: NAME,
            program: PROGRAM,
            state: self.state.path(),
            agent,
            updates: &self.control.updates,
            server: &self.server,
            signer: &self.signer,
        }
    }
}

/// Writes the configuration of an agent without BMCs that trusts a key, and its identity. Returns its state
/// directory.
fn install(control: &Control, dir: &Path, signer: &ReleaseSigner) -> StateDir {
    config(dir, &section());
    install_keys(dir, &format!("{}\n", signer.public()));
    let session = StoredSession {
        credential: control.program.clone(),
        control: vec![control.address.clone()],
        ticket_id: String::new(),
    };
    let state = StateDir::open(&dir.join("state")).unwrap();
    state.store(&session).unwrap();
    state
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
    let stage = Stage::set_up().await;
    let before = br#"{"version": "0.0.1", "reached": 3}"#;
    stage.state.write("reach.json", before).unwrap();
    let agent = stage.agent();
    let story = stage.story(&agent);
    story
        .reported("the ailment", |report| {
            report.ailment == "it reads 0 BMCs, and the program before it read 3"
        })
        .await;
    drop(agent);
    stage.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_replaces_itself_by_a_signed_release_of_its_own_kind() {
    let stage = Stage::set_up().await;
    let agent = stage.agent();
    let story = stage.story(&agent);
    let running = story.replaces_itself().await;

    // What is not signed for it, and for this moment, never runs.
    let refused = refused_releases(&stage.server, &stage.signer);
    for (release, begin) in refused {
        let version = release.version.clone();
        stage.control.updates.name_release(release);
        story
            .reported(begin, |report| {
                report.wanted == version
                    && report.phase == "failed"
                    && report.error.starts_with(begin)
            })
            .await;
    }
    assert_eq!(agent.codes(), [Some(75)]);
    assert_eq!(agent.program(), running);

    // Without the key on the host nothing is replaced at all.
    install_keys(stage.dir.path(), "# none\n");
    let unsigned = stage.server.publish(&stage.signer, NAME, "0.5.0", REFUSED);
    stage.control.updates.name_release(unsigned);
    story
        .reported("no key", |report| {
            report.phase == "off"
                && report
                    .error
                    .starts_with("keys: no key of releases is trusted")
        })
        .await;
    assert_eq!(agent.codes(), [Some(75)]);
    drop(agent);
    stage.control.stop().await;
}
