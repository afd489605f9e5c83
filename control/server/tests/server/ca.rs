//! The certificate authority is replaced under a working cluster: no session is lost, and who
//! slept through it is told what to do. The nodes are processes; the agents are real ones.

use std::path::Path;
use std::sync::atomic::Ordering;

use agents_kit::{Agent, AgentKind, SessionState};
use proto_public::metalmesh::admin::v1::{
    CaPhase, CaServiceGetRequest, CaServiceGetResponse, CaServiceRotateRequest,
    IdentityServiceRotateRequest,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::agent::{Running, invited_as, three};
use crate::daemon::PATIENCE;
use crate::identity::{breaks, has_session};
use crate::nodes::{Cluster, eventually};

async fn authority(cluster: &Cluster, at: usize) -> CaServiceGetResponse {
    let client = cluster.client(at);
    let answer = client.authority().get(CaServiceGetRequest {}).await;
    answer.unwrap().into_inner()
}

async fn rotate(cluster: &Cluster, at: usize, overlap_minutes: u32, force: bool) {
    let request = CaServiceRotateRequest {
        overlap_minutes,
        force,
    };
    let begun = cluster.client(at).authority().rotate(request).await;
    let begun = begun.unwrap().into_inner().rotation.unwrap();
    assert_eq!((begun.from, begun.to, begun.forced), (1, 2, force));
}

fn copy_dir(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

async fn until_done(cluster: &Cluster, at: usize) {
    eventually("end of the overlap", || async {
        let rotation = authority(cluster, at).await.rotation.unwrap();
        (rotation.phase() == CaPhase::Done)
            .then_some(())
            .ok_or_else(|| format!("{rotation:?}"))
    })
    .await;
}

/// Why an agent has no session.
async fn complaint(agent: &Agent) -> String {
    let mut session = agent.session();
    let told = |s: &SessionState| matches!(s, SessionState::Down(Some(_)));
    let said = timeout(PATIENCE, session.wait_for(told)).await;
    match &*said.unwrap().unwrap() {
        SessionState::Down(Some(reason)) => reason.to_string(),
        other => panic!("{other:?}"),
    }
}

/// During the overlap: who renews learns the new root, who knows only the old one is served too.
async fn overlaps(cluster: &Cluster, at: usize, awake: &Running) {
    rotate(cluster, at, 60, false).await;
    let request = CaServiceRotateRequest::default();
    let twice = cluster.client(at).authority().rotate(request).await;
    assert!(
        twice.unwrap_err().message().contains("already"),
        "one at a time"
    );
    let both = authority(cluster, at).await;
    assert_eq!(both.roots.len(), 2);
    assert_eq!(both.rotation.unwrap().waiting, 2, "leaf1 and leaf2");
    let request = IdentityServiceRotateRequest {
        id: "partition/lab/core/leaf1".into(),
    };
    let asked = cluster.client(at).identities().rotate(request).await;
    asked.unwrap();
    eventually("both roots", || async {
        let roots = awake.agent.credential().roots.len();
        (roots == 2).then_some(()).ok_or_else(|| roots.to_string())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_replaced_and_no_session_is_lost() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = three(dir.path()).await;
    let leader = usize::try_from(cluster.status(0).await.leader).unwrap() - 1;
    let at = (leader + 1) % 3;
    let awake = Running::start(&invited_as(&cluster, at, dir.path(), "leaf1").await).await;
    let asleep = invited_as(&cluster, at, dir.path(), "leaf2").await;
    let napping = Running::start(&asleep).await;
    awake.session(true).await;
    napping.session(true).await;
    napping.stop().await;
    let mut tasks = JoinSet::new();
    let breaks = breaks(&awake.agent, &mut tasks);
    let of_old = awake.agent.credential();
    copy_dir(&asleep.state_dir, &dir.path().join("overslept"));

    overlaps(&cluster, at, &awake).await;
    // It knows the old root alone, and comes in by its certificate of the old authority.
    let napping = Running::start(&asleep).await;
    napping.session(true).await;
    rotate(&cluster, at, 10, true).await;
    until_done(&cluster, at).await;
    awake.session(true).await;
    napping.session(true).await;
    assert_eq!(breaks.load(Ordering::SeqCst), 0, "no session was lost");
    assert_eq!(authority(&cluster, at).await.roots.len(), 1);
    let let_in = has_session(&of_old, &cluster.nodes[leader].mesh).await;
    assert!(!let_in, "a certificate of the old authority");

    // The control nodes trust each other by the new one, from a cold start too.
    cluster.nodes[at].kill();
    cluster.nodes[at].start();
    eventually("write at the node that came back", || async {
        let written = cluster.write(at, "after-the-rotation").await;
        written.map(drop).map_err(|e| e.to_string())
    })
    .await;

    napping.stop().await;
    let mut overslept = asleep.clone();
    overslept.state_dir = dir.path().join("overslept");
    overslept.ticket_file = None;
    let agent = overslept.start(AgentKind::Core).await.unwrap();
    let said = complaint(&agent).await;
    println!("who overslept is told: {said}");
    assert!(said.contains("metalmesh join create"), "{said}");
    agent.close().await;
    // With a ticket it comes in again.
    let anew = dir.path().join("again");
    std::fs::create_dir(&anew).unwrap();
    let back = Running::start(&invited_as(&cluster, at, &anew, "leaf2").await).await;
    back.session(true).await;
    back.stop().await;
    awake.stop().await;
}
