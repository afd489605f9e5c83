//! Joining, resuming, renewing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, AgentKind, BootClaim, KitError, Roots, StateDir, enrol_once};
use proto_identity::sha256_hex;
use proto_link::{SessionState, now_ms};
use proto_mesh::{SwitchReport, SwitchServiceClient};

use crate::fixture::*;

async fn report(agent: &Agent) -> Result<(), proto_link::LinkStatus> {
    let switch: SwitchServiceClient = agent.client();
    switch.report(SwitchReport::default()).await.map(drop)
}

#[tokio::test]
async fn joins_once_and_starts_without_control_ever_after() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let key = agents_kit::key_fingerprint(&place.state_dir()).unwrap();
    let ticket = place.write_ticket(&ca.ticket("t1", control.addr), 0o600);
    let agent = place
        .args(Some(ticket.clone()))
        .start(AgentKind::Core)
        .await
        .unwrap();
    assert_eq!(
        (
            agent.identity().partition.as_str(),
            agent.identity().id.as_str()
        ),
        ("p1", "leaf1")
    );
    assert_eq!(
        agent.credential().key.fingerprint(),
        key,
        "the key that was shown before"
    );
    report(&agent).await.unwrap();
    assert_eq!(mode(&place.state_dir()), 0o700);
    for file in ["key.pem", "session.json"] {
        assert_eq!(mode(&place.state_dir().join(file)), 0o600, "{file}");
    }
    agent.close().await;
    control.stop().await;

    std::fs::remove_file(ticket).unwrap();
    let again = place.args(None).start(AgentKind::Core).await.unwrap();
    assert_eq!(again.identity().id, "leaf1");
    assert_eq!(ca.joins.load(Ordering::SeqCst), 1);
    assert!(!matches!(*again.session().borrow(), SessionState::Up));
}

#[tokio::test]
async fn what_is_wrong_is_refused() {
    let ca = Ca::new();
    let control = Control::start(&ca);

    let place = Place::new();
    let e = place.args(None).start(AgentKind::Core).await.unwrap_err();
    assert!(matches!(e, KitError::NotJoined), "{e}");

    let mut wrong = ca.ticket("t1", control.addr);
    wrong.secret[0] = 0;
    let file = place.write_ticket(&wrong, 0o600);
    let e = place
        .args(Some(file))
        .start(AgentKind::Core)
        .await
        .unwrap_err();
    assert!(
        matches!(&e, KitError::Refused(s) if s.catalogue() == Some(1501)),
        "{e}"
    );

    let ticket = ca.ticket("t2", control.addr);
    let file = place.write_ticket(&ticket, 0o644);
    let e = place
        .args(Some(file))
        .start(AgentKind::Core)
        .await
        .unwrap_err();
    assert!(matches!(e, KitError::Exposed { mode: 0o644, .. }), "{e}");

    let file = place.write_ticket(&ticket, 0o600);
    let e = place
        .args(Some(file.clone()))
        .start(AgentKind::Pixie)
        .await
        .unwrap_err();
    assert!(matches!(e, KitError::WrongKind { .. }), "{e}");

    std::fs::write(&file, "mmt1.garbage").unwrap();
    let other = Place::new();
    let e = other
        .args(Some(file))
        .start(AgentKind::Core)
        .await
        .unwrap_err();
    assert!(matches!(e, KitError::Identity(_)), "{e}");

    use std::os::unix::fs::PermissionsExt as _;
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(other.state_dir(), open).unwrap();
    let e = other.args(None).start(AgentKind::Core).await.unwrap_err();
    assert!(matches!(e, KitError::Exposed { mode: 0o755, .. }), "{e}");
}

#[tokio::test]
async fn a_newer_ticket_joins_anew_and_a_refused_one_keeps_the_old_identity() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let start = async |id: &str, good: bool| {
        let mut ticket = ca.ticket(id, control.addr);
        ticket.secret[0] = if good { 7 } else { 0 };
        let file = place.write_ticket(&ticket, 0o600);
        place
            .args(Some(file))
            .start(AgentKind::Core)
            .await
            .unwrap()
            .close()
            .await;
        ca.joins.load(Ordering::SeqCst)
    };
    assert_eq!(start("t1", true).await, 1);
    assert_eq!(start("t1", true).await, 1, "the same ticket");
    assert_eq!(start("t2", true).await, 2, "a newer one");
    assert_eq!(start("t3", false).await, 2, "a bad one");
}

#[tokio::test]
async fn renews_at_half_life_without_losing_a_call() {
    let ca = Ca::new();
    ca.life.store(4, Ordering::SeqCst);
    let control = Control::start(&ca);
    let place = Place::new();
    let ticket = place.write_ticket(&ca.ticket("t1", control.addr), 0o600);
    let agent = place
        .args(Some(ticket))
        .start(AgentKind::Core)
        .await
        .unwrap();
    let first = agent.credential().identity().unwrap().serial;
    while ca.renewals.load(Ordering::SeqCst) < 3 {
        report(&agent).await.unwrap();
    }
    report(&agent).await.unwrap();
    let now = agent.credential().identity().unwrap().serial;
    assert_ne!(first, now);
    let dir = StateDir::open(&place.state_dir()).unwrap();
    eventually("the newest is on disk", || {
        let stored = dir
            .session()
            .unwrap()
            .unwrap()
            .credential
            .identity()
            .unwrap();
        stored.serial == agent.credential().identity().unwrap().serial
    })
    .await;
    assert_eq!(ca.resumptions.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn comes_back_after_its_certificate_has_ended() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let dir = StateDir::open(&place.state_dir()).unwrap();
    let two_hours = 7_200_000;
    let ended = ca.credential(CORE, now_ms() - two_hours, Duration::from_secs(3600));
    dir.store(&StoredSession {
        credential: ended,
        control: vec![control.addr.to_string()],
        ticket_id: "t1".into(),
    })
    .unwrap();
    let agent = place.args(None).start(AgentKind::Core).await.unwrap();
    report(&agent).await.unwrap();
    assert_eq!(ca.resumptions.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn hammer_enrols_with_a_key_in_memory() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let ticket = ca.ticket("boot", control.addr);
    let claim = BootClaim {
        ticket_id: ticket.id.clone(),
        secret: ticket.secret.to_vec(),
        machine_uuid: "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f".into(),
        mac: "52:54:00:00:00:01".into(),
        nonce: None,
    };
    let addresses = vec![control.addr.to_string()];
    let roots = Roots::Sha256(ticket.roots.clone());
    let credential = enrol_once(&addresses, roots, &claim).await.unwrap();
    assert_eq!(sha256_hex(&credential.roots[0]), ticket.roots[0]);
    let agent = Agent::from_credential(credential, addresses).unwrap();
    report(&agent).await.unwrap();
    assert!(agent.last_good("x").is_none());
    assert!(!format!("{claim:?}").contains("[7"));
}

#[tokio::test]
async fn the_nonce_of_the_bmc_is_read_anew_before_each_attempt() {
    let ca = Ca::new();
    *ca.nonce.lock().unwrap() = "mm-new".into();
    let control = Control::start(&ca);
    let ticket = ca.ticket("boot", control.addr);
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = reads.clone();
    let read = move || {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let seen = if is_first { "mm-old" } else { "mm-new" };
        Box::pin(async move { Some(seen.to_owned()) }) as Pin<Box<dyn Future<Output = _> + Send>>
    };
    let claim = BootClaim {
        ticket_id: ticket.id.clone(),
        secret: ticket.secret.to_vec(),
        machine_uuid: "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f".into(),
        mac: "52:54:00:00:00:01".into(),
        nonce: Some(Arc::new(read)),
    };
    let roots = Roots::Sha256(ticket.roots.clone());
    enrol_once(&[control.addr.to_string()], roots, &claim)
        .await
        .unwrap();
    assert_eq!(reads.load(Ordering::SeqCst), 2);
    assert_eq!(ca.joins.load(Ordering::SeqCst), 1);
}
