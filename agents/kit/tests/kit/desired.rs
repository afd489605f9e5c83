//! Following desired state.

use std::sync::Arc;
use std::time::Duration;

use agents_kit::{Agent, AgentKind, Origin, run_desired};
use proto_link::now_ms;
use proto_mesh::{SwitchDesired, SwitchDesiredRequest, SwitchServiceClient};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::fixture::*;

/// Follows in the background; what arrives comes out of the receiver, each after a permit.
struct Follower {
    seen: mpsc::UnboundedReceiver<(u32, Origin)>,
    permits: Arc<Semaphore>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Follower {
    fn start(agent: Agent) -> Self {
        let (tx, seen) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(0));
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (gate, stopped) = (permits.clone(), stop.clone());
        tasks.spawn(async move {
            let switch: SwitchServiceClient = agent.client();
            let open = || switch.desired(SwitchDesiredRequest::default());
            let on = |state: SwitchDesired, origin| {
                let (tx, gate) = (tx.clone(), gate.clone());
                async move {
                    tx.send((state.ports[0].vni, origin)).unwrap();
                    gate.acquire().await.unwrap().forget();
                }
            };
            run_desired(&agent, open, agent.last_good("switch"), on, stopped).await;
        });
        Self {
            seen,
            permits,
            stop,
            tasks,
        }
    }

    async fn next(&mut self) -> (u32, Origin) {
        timeout(PATIENCE, self.seen.recv())
            .await
            .expect("in time")
            .expect("more")
    }

    async fn stop(mut self) {
        self.stop.cancel();
        self.permits.add_permits(100);
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn joined(ca: &Arc<Ca>, place: &Place, control: &Control) -> Agent {
    let ticket = place.write_ticket(&ca.ticket("t1", control.addr), 0o600);
    place
        .args(Some(ticket))
        .start(AgentKind::Core)
        .await
        .unwrap()
}

#[tokio::test]
async fn only_the_newest_counts_and_older_ones_are_dropped() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let mut follower = Follower::start(joined(&ca, &place, &control).await);
    assert_eq!(follower.next().await, (1, Origin::Live));
    // While the first is being worked on, more come; the last one is handed over.
    let cache = place.state_dir().join("switch.last-good");
    for vni in 2..=5 {
        ca.desired.send_replace(state(1, u64::from(vni), vni));
    }
    let newest = |vni: u32| {
        let bytes = std::fs::read(&cache).unwrap_or_default();
        let body = agents_kit::cache::decode_cache(&bytes).map(<[u8]>::to_vec);
        let stored: Option<SwitchDesired> = body.and_then(|b| prost::Message::decode(&*b).ok());
        stored.is_some_and(|s| s.ports[0].vni == vni)
    };
    eventually("the last one has arrived", || newest(5)).await;
    follower.permits.add_permits(1);
    assert_eq!(follower.next().await, (5, Origin::Live));
    follower.permits.add_permits(100);
    // Stale, then the same under a newer fence, then news.
    ca.desired.send_replace(state(1, 4, 9));
    ca.desired.send_replace(state(2, 1, 5));
    ca.desired.send_replace(state(2, 2, 6));
    assert_eq!(follower.next().await, (6, Origin::Live));
    follower.stop().await;
}

#[tokio::test]
async fn the_last_state_survives_and_the_stream_comes_back() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let addr = control.addr;
    let agent = joined(&ca, &place, &control).await;
    let mut follower = Follower::start(agent.clone());
    follower.permits.add_permits(100);
    assert_eq!(follower.next().await, (1, Origin::Live));
    follower.stop().await;
    agent.close().await;
    control.stop().await;

    // Without control the agent begins with what it knew.
    let agent = place.args(None).start(AgentKind::Core).await.unwrap();
    let mut follower = Follower::start(agent);
    follower.permits.add_permits(100);
    assert_eq!(follower.next().await, (1, Origin::Cache));
    ca.desired.send_replace(state(2, 2, 2));
    let control = Control::start_at(&ca, addr);
    assert_eq!(follower.next().await, (2, Origin::Live));
    control.stop().await;
    ca.desired.send_replace(state(3, 3, 3));
    let _control = Control::start_at(&ca, addr);
    assert_eq!(follower.next().await, (3, Origin::Live));
    follower.stop().await;
}

#[tokio::test]
async fn a_damaged_cache_counts_as_none() {
    let ca = Ca::new();
    let place = Place::new();
    let dir = agents_kit::StateDir::open(&place.state_dir()).unwrap();
    let cache = agents_kit::LastGood::new(dir, "switch");
    cache.store(&state(1, 1, 7)).unwrap();
    assert_eq!(cache.load::<SwitchDesired>(), Some(state(1, 1, 7)));
    let path = place.state_dir().join("switch.last-good");
    let good = std::fs::read(&path).unwrap();
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 1;
        std::fs::write(&path, bad).unwrap();
        assert_eq!(cache.load::<SwitchDesired>(), None, "byte {i}");
    }
    std::fs::write(&path, &good[..10]).unwrap();
    assert_eq!(cache.load::<SwitchDesired>(), None);
    let credential = ca.credential(CORE, now_ms(), Duration::from_secs(60));
    drop(Agent::from_credential(credential, vec!["127.0.0.1:9".into()]).unwrap());
}
