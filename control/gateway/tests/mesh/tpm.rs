//! Joining by a TPM: the agent's side against a software TPM, control's side as it is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use agents_kit::LogFormat;
use agents_kit::tpm::Tpm;
use agents_kit::{AgentArgs, AgentKind as Kind, KitError, TpmArgs};
use control_state::AgentKind;
use proto_identity::ticket::JoinTicket;
use proto_identity::{Key, tpm};
use proto_mesh::{EnrolServiceClient, JoinRequest, TpmChallengeRequest};

use crate::fixture::*;

/// A TPM in software, with keys of its own.
struct SoftTpm {
    dir: tempfile::TempDir,
    process: Child,
}

impl SoftTpm {
    /// None, and a line that says so, where swtpm is not installed.
    fn start() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let (state, socket) = (dir.path().join("state"), dir.path().join("tpm"));
        std::fs::create_dir(&state).unwrap();
        let started = Command::new("swtpm")
            .args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"])
            .args(["--tpmstate", &format!("dir={}", state.display())])
            .args([
                "--server",
                &format!("type=unixio,path={}", socket.display()),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = started else {
            eprintln!("skipped: swtpm is not installed");
            return None;
        };
        let tpm = Self { dir, process };
        let end = Instant::now() + PATIENCE;
        while !tpm.socket().exists() {
            assert!(Instant::now() < end, "swtpm never listened");
            std::thread::yield_now();
        }
        Some(tpm)
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("tpm")
    }

    /// What an operator reads on the host.
    fn fingerprint(&self) -> String {
        let args = TpmArgs { tpm: self.socket() };
        args.fingerprint().unwrap()
    }
}

impl Drop for SoftTpm {
    fn drop(&mut self) {
        let ended = self.process.kill().and_then(|()| self.process.wait());
        drop(ended);
    }
}

fn args(control: &Control, dir: &Path, ticket: &JoinTicket, tpm: &Path) -> AgentArgs {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::create_dir_all(dir).unwrap();
    let file = dir.join("ticket");
    std::fs::write(&file, ticket.encode()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    AgentArgs {
        control: vec![control.address().to_string()],
        state_dir: dir.join("state"),
        ticket_file: Some(file),
        tpm: tpm.to_owned(),
        offline: false,
        log: LogFormat::Text,
        metrics: None,
        otlp: None,
    }
}

async fn bound_ticket(control: &Control, fingerprint: &str) -> JoinTicket {
    let new = control_pki::NewJoinTicket {
        tpm: Some(fingerprint.parse().unwrap()),
        ..Control::new_ticket(AgentKind::Core, "p1", "leaf1")
    };
    control.ticket(new).await
}

fn refusal(e: &KitError) -> Option<u16> {
    match e {
        KitError::Refused(status) => status.catalogue(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_joins_by_its_own_tpm_only() {
    let (Some(own), Some(other)) = (SoftTpm::start(), SoftTpm::start()) else {
        return;
    };
    let control = Control::start().await;
    let dir = tempfile::tempdir().unwrap();
    let fingerprint = own.fingerprint();
    assert_eq!(own.fingerprint(), fingerprint, "the same each time");
    assert_ne!(other.fingerprint(), fingerprint);
    let ticket = bound_ticket(&control, &fingerprint).await;
    assert!(ticket.tpm);

    // Somebody copied the ticket to a host with another TPM, or to one without.
    let elsewhere = args(
        &control,
        &dir.path().join("other"),
        &ticket,
        &other.socket(),
    );
    let e = elsewhere.start(Kind::Core).await.unwrap_err();
    assert_eq!(refusal(&e), Some(1505), "{e:?}");
    let none = args(
        &control,
        &dir.path().join("none"),
        &ticket,
        Path::new("/nowhere/tpm"),
    );
    let e = none.start(Kind::Core).await.unwrap_err();
    assert!(matches!(e, KitError::Tpm { .. }), "{e:?}");
    // ... or leaves the TPM out.
    let e = control
        .join(&ticket, &Key::generate().unwrap())
        .await
        .unwrap_err();
    assert_eq!(e.catalogue(), Some(1513), "{e}");

    let here = args(&control, &dir.path().join("own"), &ticket, &own.socket());
    let agent = here.start(Kind::Core).await.unwrap();
    assert_eq!(agent.identity().id, "leaf1");
    agent.close().await;
    let again = args(&control, &dir.path().join("twice"), &ticket, &own.socket());
    let e = again.start(Kind::Core).await.unwrap_err();
    assert_eq!(refusal(&e), Some(1502), "one ticket, one key: {e:?}");
    control.stop().await;
}

/// The agent's side by hand, so that a step can go wrong.
struct Attempt {
    request: JoinRequest,
    secret: Vec<u8>,
}

async fn attempt(control: &Control, ticket: &JoinTicket, key: &Key, tpm: &SoftTpm) -> Attempt {
    let mut tpm = Tpm::open(&tpm.socket()).unwrap();
    let loaded = tpm.load().unwrap();
    let request = TpmChallengeRequest {
        ticket_id: ticket.id.clone(),
        secret: ticket.secret.to_vec(),
        csr: key.request().unwrap(),
        endorsement: loaded.endorsement.clone(),
        attestation: loaded.attestation.clone(),
    };
    let client = EnrolServiceClient::from(control.client(None));
    let asked = client.challenge_tpm(request).await.unwrap();
    let mut broken = asked.credential.clone();
    broken[40] ^= 1;
    assert!(
        tpm.activate(&loaded, &broken, &asked.encrypted_seed)
            .is_err()
    );
    let secret = tpm.activate(&loaded, &asked.credential, &asked.encrypted_seed);
    tpm.unload(&loaded).unwrap();
    Attempt {
        request: JoinRequest {
            ticket_id: ticket.id.clone(),
            secret: ticket.secret.to_vec(),
            csr: key.request().unwrap(),
            tpm_sealed: asked.sealed,
            ..JoinRequest::default()
        },
        secret: secret.unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_for_one_ticket_one_key_and_two_minutes() {
    let Some(soft) = SoftTpm::start() else {
        return;
    };
    let control = Control::start().await;
    let fingerprint = soft.fingerprint();
    let ticket = bound_ticket(&control, &fingerprint).await;
    let other_ticket = bound_ticket(&control, &fingerprint).await;
    let (key, other_key) = (Key::generate().unwrap(), Key::generate().unwrap());
    let Attempt { request, secret } = attempt(&control, &ticket, &key, &soft).await;
    let client = EnrolServiceClient::from(control.client(None));
    let proof = tpm::proof(&secret, &ticket.id, &key.fingerprint());
    let good = JoinRequest {
        tpm_proof: proof,
        ..request.clone()
    };
    let refused = [
        ("no proof", request.clone()),
        (
            "of another secret",
            JoinRequest {
                tpm_proof: tpm::proof(&[0; 32], &ticket.id, &key.fingerprint()),
                ..request
            },
        ),
        (
            "another key",
            JoinRequest {
                csr: other_key.request().unwrap(),
                ..good.clone()
            },
        ),
        (
            "another ticket",
            JoinRequest {
                ticket_id: other_ticket.id,
                secret: other_ticket.secret.to_vec(),
                ..good.clone()
            },
        ),
        (
            "a challenge of its own",
            JoinRequest {
                tpm_sealed: vec![7; 80],
                ..good.clone()
            },
        ),
    ];
    for (case, request) in refused {
        let e = client.join(request).await.unwrap_err();
        assert_eq!(e.catalogue(), Some(1513), "{case}: {e}");
    }
    control.clock.advance(121_000);
    let e = client.join(good).await.unwrap_err();
    assert!(e.message().contains("too long"), "{e}");
    let fresh = attempt(&control, &ticket, &key, &soft).await;
    let proof = tpm::proof(&fresh.secret, &ticket.id, &key.fingerprint());
    let good = JoinRequest {
        tpm_proof: proof,
        ..fresh.request
    };
    client.join(good).await.unwrap();
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_no_challenge() {
    let control = Control::start().await;
    let ticket = bound_ticket(&control, &"ab".repeat(32)).await;
    let client = EnrolServiceClient::from(control.client(None));
    let key = Key::generate().unwrap();
    let request = TpmChallengeRequest {
        ticket_id: ticket.id.clone(),
        secret: vec![1; 32],
        csr: key.request().unwrap(),
        ..TpmChallengeRequest::default()
    };
    let e = client.challenge_tpm(request.clone()).await.unwrap_err();
    assert_eq!(e.catalogue(), Some(1501), "{e}");
    // With the secret, but what it shows is no key of a TPM.
    let request = TpmChallengeRequest {
        secret: ticket.secret.to_vec(),
        ..request
    };
    let e = client.challenge_tpm(request).await.unwrap_err();
    assert!(e.message().contains("public area"), "{e}");
    control.stop().await;
}
