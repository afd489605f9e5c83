//! Tickets, renewal, revocation, resumption.

use std::time::Duration;

use control_state::{
    AgentKind, AuditEntry, EventKind, EventLog, JoinTicket as Stored, RevokeIdentity,
};
use proto_identity::Key;
use proto_link::{Code, SessionState};
use proto_mesh::*;
use proto_types::MachineId;
use tokio::time::timeout;

use crate::fixture::*;

const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
const MAC: &str = "52:54:00:00:00:01";

fn number<T: std::fmt::Debug>(result: Result<T, LinkStatus>) -> u16 {
    result.unwrap_err().catalogue().unwrap_or(0)
}

fn core_ticket() -> control_pki::NewJoinTicket {
    Control::new_ticket(AgentKind::Core, "p1", "leaf1")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_ticket_is_good_once_for_whom_it_was_made() {
    let control = Control::start().await;
    let (key, other) = (Key::generate().unwrap(), Key::generate().unwrap());

    let ticket = control.ticket(core_ticket()).await;
    let mut wrong = ticket.clone();
    wrong.secret[0] ^= 1;
    assert_eq!(
        number(control.join(&wrong, &key).await),
        1501,
        "wrong secret"
    );
    wrong = ticket.clone();
    wrong.id = UUID.into();
    assert_eq!(number(control.join(&wrong, &key).await), 1501, "unknown");

    let credential = control.join(&ticket, &key).await.unwrap();
    let identity = credential.identity().unwrap();
    assert_eq!(
        identity.id.to_string(),
        "spiffe://mesh.test/partition/p1/core/leaf1"
    );
    assert_eq!(number(control.join(&ticket, &other).await), 1502, "used");
    // The answer may have been lost on its way: the same key may ask again, for a while.
    control.join(&ticket, &key).await.unwrap();
    control.clock.advance(control_pki::REPEAT_MAX + 1);
    assert_eq!(
        number(control.join(&ticket, &key).await),
        1502,
        "used a while ago"
    );

    let mut bound = core_ticket();
    bound.key = Some(fingerprint(&key));
    let bound = control.ticket(bound).await;
    assert_eq!(
        number(control.join(&bound, &other).await),
        1505,
        "foreign key"
    );
    control.join(&bound, &key).await.unwrap();

    let revoked = control.ticket(core_ticket()).await;
    let permit = tests_support::permit_for("RevokeJoinTicket");
    let id = revoked.id.parse().unwrap();
    control
        .pki
        .revoke_join_ticket(&permit, "admin", id)
        .await
        .unwrap();
    assert_eq!(number(control.join(&revoked, &key).await), 1504, "revoked");

    let ended = control.ticket(core_ticket()).await;
    control.clock.advance(16 * 60_000);
    assert_eq!(number(control.join(&ended, &key).await), 1503, "expired");

    let secrets = control
        .store
        .read_local(|t| format!("{:?}", t.all::<Stored>().count()))
        .unwrap();
    assert_eq!(secrets, "4");
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_racing_agents_one_joins() {
    let control = Control::start().await;
    for _ in 0..5 {
        let ticket = control.ticket(core_ticket()).await;
        let (a, b) = (Key::generate().unwrap(), Key::generate().unwrap());
        let (a, b) = tokio::join!(control.join(&ticket, &a), control.join(&ticket, &b));
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1);
    }
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_cannot_make_control_write() {
    let control = Control::start().await;
    let ticket = control.ticket(core_ticket()).await;
    let key = Key::generate().unwrap();
    let log = control.store.metrics().last_log;
    for _ in 0..3 {
        let mut wrong = ticket.clone();
        wrong.secret[5] ^= 1;
        control.join(&wrong, &key).await.unwrap_err();
        control
            .join_as(UUID, &[0; 32], &key, UUID, MAC)
            .await
            .unwrap_err();
    }
    let resume = ResumeRequest {
        csr: key.request().unwrap(),
        chain: vec![vec![1, 2, 3]],
    };
    EnrolServiceClient::from(control.client(None))
        .resume(resume)
        .await
        .unwrap_err();
    assert_eq!(control.store.metrics().last_log, log);
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boot_ticket_is_for_one_machine_and_address() {
    let control = Control::start().await;
    let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
    let other: BootServiceClient = control.agent(AgentKind::Pixie, "p2", "pixie2").await;
    let ask = || BootTicketRequest {
        machine_uuid: UUID.into(),
        mac: MAC.into(),
    };
    assert_eq!(
        number(pixie.issue_ticket(ask()).await),
        1001,
        "nobody saw it"
    );
    let seen = seen_at_boot(UUID, MAC);
    let target = pixie.seen(seen).await.unwrap().target();
    assert_eq!(target, BootTarget::Hammer);
    assert_eq!(
        number(other.issue_ticket(ask()).await),
        1208,
        "another partition"
    );

    let ticket = pixie.issue_ticket(ask()).await.unwrap();
    let key = Key::generate().unwrap();
    let join = |uuid: &'static str, mac: &'static str| {
        control.join_as(&ticket.ticket_id, &ticket.secret, &key, uuid, mac)
    };
    let foreign = "1d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
    assert_eq!(number(join(foreign, MAC).await), 1505, "another machine");
    // It is this machine's admin who has to know.
    assert_eq!(
        number(join(UUID, "52:54:00:00:00:02").await),
        1505,
        "another address"
    );
    let id: MachineId = UUID.parse().unwrap();
    let log = control
        .store
        .read_local(|t| t.get::<EventLog>(&id).cloned())
        .unwrap()
        .unwrap();
    let told = log.last_error_event.as_ref().unwrap();
    assert_eq!(told.kind, EventKind::Crashed);
    assert!(told.message.contains("MM-1505"), "{}", told.message);

    let credential = join(UUID, MAC).await.unwrap();
    let identity = credential.identity().unwrap().id.to_string();
    assert_eq!(identity, format!("spiffe://mesh.test/machine/{UUID}"));
    assert_eq!(number(join(UUID, MAC).await), 1502, "used");
    // A new boot makes the old ticket void.
    let second = pixie.issue_ticket(ask()).await.unwrap();
    assert_eq!(number(join(UUID, MAC).await), 1501, "replaced");
    control.clock.advance(5 * 60_000 + 1);
    let late = control
        .join_as(&second.ticket_id, &second.secret, &key, UUID, MAC)
        .await;
    assert_eq!(number(late), 1503, "expired");

    let audited = control.store.read_local(|t| {
        let about = |e: &&std::sync::Arc<AuditEntry>| e.method.contains("IssueTicket");
        t.all::<AuditEntry>().filter(about).count()
    });
    control.stop().await;
    assert!(audited.unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewal_and_revocation() {
    let control = Control::start().await;
    let ticket = control.ticket(core_ticket()).await;
    let key = Key::generate().unwrap();
    let first = control.join(&ticket, &key).await.unwrap();
    let mesh = control.client(Some(&first));
    let renew = || RenewRequest {
        csr: key.request().unwrap(),
    };
    let identity: IdentityServiceClient = mesh.clone().into();
    let second = credential(identity.renew(renew()).await.unwrap(), &key);
    assert_eq!(second.identity().unwrap().id, first.identity().unwrap().id);
    assert_ne!(
        second.identity().unwrap().serial,
        first.identity().unwrap().serial
    );
    let newer = control.client(Some(&second));
    IdentityServiceClient::from(newer.clone())
        .renew(renew())
        .await
        .unwrap();

    let id = first.identity().unwrap().id;
    let revoke = RevokeIdentity {
        identity: id.to_string(),
        reason: "stolen".into(),
    };
    control.propose(revoke).await.unwrap();
    for mesh in [&mesh, &newer] {
        wait_until_revoked(mesh).await;
    }
    // Nothing is left to resume from.
    let resume = ResumeRequest {
        csr: key.request().unwrap(),
        chain: second.chain.iter().map(|c| c.to_vec()).collect(),
    };
    let e = EnrolServiceClient::from(control.client(None))
        .resume(resume)
        .await
        .unwrap_err();
    assert_eq!(e.catalogue(), Some(1506));
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoking_a_ticket_ends_the_agent_that_joined_by_it() {
    let control = Control::start().await;
    let permit = tests_support::permit_for("RevokeJoinTicket");
    let old = control.ticket(core_ticket()).await;
    control.join(&old, &Key::generate().unwrap()).await.unwrap();
    control.clock.advance(1000);
    let ticket = control.ticket(core_ticket()).await;
    let credential = control
        .join(&ticket, &Key::generate().unwrap())
        .await
        .unwrap();
    let mesh = control.client(Some(&credential));
    let mut state = mesh.state();
    drop(
        timeout(PATIENCE, state.wait_for(|s| *s == SessionState::Up))
            .await
            .unwrap()
            .unwrap(),
    );
    // The agent joined anew since: the old ticket is no longer its own.
    control
        .pki
        .revoke_join_ticket(&permit, "admin", old.id.parse().unwrap())
        .await
        .unwrap();
    IdentityServiceClient::from(mesh.clone())
        .renew(RenewRequest {
            csr: credential.key.request().unwrap(),
        })
        .await
        .unwrap();
    control
        .pki
        .revoke_join_ticket(&permit, "admin", ticket.id.parse().unwrap())
        .await
        .unwrap();
    wait_until_revoked(&mesh).await;
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_was_away_resumes_with_its_own_key_only() {
    // Two hours ago, by the clock of the certificates.
    let mut control = Control::idle(proto_link::now_ms() - 7_200_000).await;
    let ticket = control.ticket(core_ticket()).await;
    let key = Key::generate().unwrap();
    let enrol = control_pki::Enrol {
        ticket_id: ticket.id,
        secret: ticket.secret.to_vec(),
        request: key.request().unwrap(),
        machine: None,
        tpm: None,
        nonce: vec![],
    };
    let old = control.pki.enrol(&enrol).await.unwrap();
    control.clock.advance(7_200_000);
    control.serve();
    let chain: Vec<Vec<u8>> = old.chain.iter().map(|c| c.to_vec()).collect();
    let nobody = EnrolServiceClient::from(control.client(None));
    let resume = |key: &Key, chain: &[Vec<u8>]| {
        nobody.resume(ResumeRequest {
            csr: key.request().unwrap(),
            chain: chain.to_vec(),
        })
    };
    let thief = Key::generate().unwrap();
    assert_eq!(number(resume(&thief, &chain).await), 1505, "another key");
    let mut forged = chain.clone();
    let last = forged[0].len() - 1;
    forged[0][last] ^= 1;
    let e = resume(&key, &forged).await.unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument, "forged");
    let fresh = credential(resume(&key, &chain).await.unwrap(), &key);
    let core = SwitchServiceClient::from(control.client(Some(&fresh)));
    core.register(SwitchRegisterRequest::default())
        .await
        .unwrap();
    control
        .clock
        .advance(Duration::from_secs(60 * 60 * 24 * 31).as_millis() as u64);
    assert_eq!(
        number(resume(&key, &chain).await),
        1503,
        "away for too long"
    );
    control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_survives_a_restart_and_nothing_else_opens_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = || control_store::StoreConfig::new(dir.path().join("data"), 1, "test");
    let seal = control_pki::SealingKey::load(&dir.path().join("seal.key"), true).unwrap();
    let store = control_store::Store::open(config()).await.unwrap();
    let pki = control_pki::Pki::open(store.clone(), &seal, "mesh.test")
        .await
        .unwrap();
    let roots = pki.root_hashes();
    store.shutdown().await;
    drop((pki, store));
    let store = control_store::Store::open(config()).await.unwrap();
    let again = control_pki::Pki::open(store.clone(), &seal, "mesh.test")
        .await
        .unwrap();
    assert_eq!(again.root_hashes(), roots);
    let other = control_pki::SealingKey::load(&dir.path().join("other.key"), true).unwrap();
    let e = control_pki::Pki::open(store.clone(), &other, "mesh.test")
        .await
        .unwrap_err();
    assert!(matches!(e, control_pki::PkiError::WrongSeal), "{e}");
    store.shutdown().await;
}
