//! Identities on three nodes: rotated without a break, and revoked everywhere at once. The nodes
//! are processes; the agent is the real one, on a switch in memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use agents_kit::{Agent, AgentKind, Credential, SessionState, StateDir};
use proto_public::metalmesh::admin::v1::{
    Identity, IdentityKind, IdentityServiceGetRequest, IdentityServiceListRequest,
    IdentityServiceRevokeRequest, IdentityServiceRotateRequest, JoinMethod,
};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;

use crate::agent::{Running, invited, order_ticket, three};
use crate::daemon::PATIENCE;
use crate::nodes::{Cluster, eventually};

const LEAF: &str = "partition/lab/core/leaf1";
/// How soon a revoked identity's sessions have to be over.
const REVOKED_WITHIN: Duration = Duration::from_secs(1);

async fn listed(cluster: &Cluster, at: usize) -> Vec<Identity> {
    let request = IdentityServiceListRequest {
        kind: IdentityKind::Core.into(),
        partition: "lab".into(),
        ..Default::default()
    };
    let answer = cluster.client(at).identities().list(request).await;
    answer.unwrap().into_inner().identities
}

async fn shown(cluster: &Cluster, at: usize) -> Identity {
    let request = IdentityServiceGetRequest { id: LEAF.into() };
    let answer = cluster.client(at).identities().get(request).await;
    answer.unwrap().into_inner().identity.unwrap()
}

/// Counts how often there was no session.
pub(crate) fn breaks(agent: &Agent, tasks: &mut JoinSet<()>) -> Arc<AtomicUsize> {
    let (count, mut session) = (Arc::new(AtomicUsize::new(0)), agent.session());
    let seen = count.clone();
    tasks.spawn(async move {
        while session.changed().await.is_ok() {
            if !matches!(*session.borrow_and_update(), SessionState::Up) {
                seen.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    count
}

fn fingerprint(credential: &Credential) -> String {
    credential.key.fingerprint()
}

/// Tries a key and certificate at one node.
pub(crate) async fn has_session(credential: &Credential, address: &str) -> bool {
    let agent = Agent::from_credential(credential.clone(), vec![address.to_owned()]).unwrap();
    let mut session = agent.session();
    let settled = |s: &SessionState| !matches!(s, SessionState::Down(None));
    let state = timeout(PATIENCE, session.wait_for(settled)).await;
    let is_up = matches!(*state.unwrap().unwrap(), SessionState::Up);
    agent.close().await;
    is_up
}

async fn rotates(cluster: &Cluster, follower: usize, running: &Running, dir: &Path) {
    let before = running.agent.credential();
    let mut tasks = JoinSet::new();
    let breaks = breaks(&running.agent, &mut tasks);
    let request = IdentityServiceRotateRequest { id: LEAF.into() };
    let asked = cluster.client(follower).identities().rotate(request).await;
    let asked = asked.unwrap().into_inner().identity.unwrap();
    assert!(asked.rotate_since.is_some());
    let after = eventually("new key", || async {
        let now = running.agent.credential();
        (fingerprint(&now) != fingerprint(&before))
            .then_some(now)
            .ok_or_else(|| "the old one".to_owned())
    })
    .await;
    let known = shown(cluster, follower).await;
    assert_eq!(known.key_sha256, fingerprint(&after));
    assert!(known.rotate_since.is_none());
    assert_eq!(breaks.load(Ordering::SeqCst), 0, "no session was lost");
    // It is on disk as one: a restart finds a key and a certificate that fit.
    let kept = StateDir::open(&dir.join("core")).unwrap();
    eventually("the new key on disk", || async {
        let stored = kept.session().map_err(|e| e.to_string())?;
        let stored = stored.ok_or("no session")?.credential;
        let is_next_gone = kept.pending_key().map_err(|e| e.to_string())?.is_none();
        (fingerprint(&stored) == fingerprint(&after) && is_next_gone)
            .then_some(())
            .ok_or_else(|| "not yet".to_owned())
    })
    .await;
}

async fn revokes(cluster: &Cluster, follower: usize, running: &Running) {
    let stolen = running.agent.credential();
    let mut session = running.agent.session();
    let request = IdentityServiceRevokeRequest {
        id: LEAF.into(),
        reason: "the switch was stolen".into(),
    };
    let revoked = cluster.client(follower).identities().revoke(request).await;
    let answered = Instant::now();
    let revoked = revoked.unwrap().into_inner().identity.unwrap();
    assert_eq!(revoked.revoked_reason, "the switch was stolen");
    let over = session.wait_for(|state| !matches!(state, SessionState::Up));
    timeout(PATIENCE, over).await.unwrap().unwrap();
    let took = answered.elapsed();
    println!(
        "the session was over {} ms after the answer",
        took.as_millis()
    );
    assert!(took <= REVOKED_WITHIN, "{took:?}");
    for node in &cluster.nodes {
        let let_in = has_session(&stolen, &node.mesh).await;
        assert!(!let_in, "a stolen certificate at {}", node.mesh);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_rotated_and_revoked_on_every_node() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let cluster = three(dir.path()).await;
    let leader = usize::try_from(cluster.status(0).await.leader).unwrap() - 1;
    let follower = (leader + 1) % 3;
    let args = invited(&cluster, follower, dir.path()).await;
    let running = Running::start(&args).await;
    running.session(true).await;

    for at in 0..3 {
        let all = listed(&cluster, at).await;
        let [one] = all.as_slice() else {
            panic!("{all:?}");
        };
        assert!(one.id.ends_with(LEAF), "{}", one.id);
        assert_eq!(one.joined_by(), JoinMethod::JoinTicket);
        assert_eq!(one.connected, Some(true), "node {at} asks node {leader}");
        assert_eq!(shown(&cluster, at).await.connected, Some(true), "node {at}");
        assert!(one.revoked_at.is_none() && one.expires_at.is_some());
    }
    rotates(&cluster, follower, &running, dir.path()).await;
    revokes(&cluster, follower, &running).await;
    running.stop().await;

    // The old ticket and certificate are of no use; a new ticket is, if it says that it is for this.
    let mut stale = args.clone();
    std::fs::remove_file(args.ticket_file.as_ref().unwrap()).unwrap();
    stale.ticket_file = None;
    let refused = stale.start(AgentKind::Core).await.unwrap();
    let mut session = refused.session();
    let told = |s: &SessionState| matches!(s, SessionState::Down(Some(_)));
    let said = timeout(PATIENCE, session.wait_for(told)).await;
    drop(said.unwrap().unwrap());
    refused.close().await;
    let plain = order_ticket(&cluster, follower, dir.path(), "leaf1", false).await;
    let refused = plain.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("MM-1517"), "{refused}");
    assert!(refused.message().contains("--reenrol"), "{refused}");
    let wanted = order_ticket(&cluster, follower, dir.path(), "leaf1", true).await;
    let again = Running::start(&wanted.unwrap()).await;
    again.session(true).await;
    let back = shown(&cluster, leader).await;
    assert!(back.revoked_at.is_none(), "{back:?}");
    again.stop().await;
}
