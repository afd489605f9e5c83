//! Following desired state.

use std::sync::Arc;
use std::time::Duration;

use agents_kit::{Agent, AgentArgs, AgentKind, KitError, LastGood, Origin, StateDir, run_desired};
use base_runtime::Chain;
use proto_link::now_ms;
use proto_mesh::{SwitchDesired, SwitchDesiredRequest, SwitchReport, SwitchServiceClient};
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

/// A cache of the core agent whose roots are this authority's.
fn cache(ca: &Ca, place: &Place, own: &str) -> LastGood {
    let dir = StateDir::open(&place.state_dir()).unwrap();
    let credential = ca.credential(own, now_ms(), Duration::from_secs(60));
    let (_, credential) = tokio::sync::watch::channel(credential);
    LastGood::new(dir, "switch", own.parse().unwrap(), credential)
}

fn load(cache: &LastGood) -> Result<Option<SwitchDesired>, String> {
    cache.load().map_err(|error| Chain(&error).to_string())
}

const LEAF2: &str = "spiffe://mesh.test/partition/p1/core/leaf2";

#[tokio::test]
async fn a_changed_byte_in_the_cache_is_refused() {
    let (ca, place) = (Ca::new(), Place::new());
    let cache = cache(&ca, &place, CORE);
    assert_eq!(load(&cache), Ok(None));
    cache
        .store::<SwitchDesired>(&ca.sealed(CORE, state(1, 1, 7)))
        .unwrap();
    assert_eq!(load(&cache), Ok(Some(state(1, 1, 7))));
    let path = place.state_dir().join("switch.last-good");
    let good = std::fs::read(&path).unwrap();
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 1;
        std::fs::write(&path, bad).unwrap();
        let refused = load(&cache).expect_err(&format!("byte {i}"));
        assert!(refused.starts_with("switch.last-good is "), "{refused}");
    }
    for len in 0..good.len() {
        std::fs::write(&path, &good[..len]).unwrap();
        assert!(load(&cache).is_err(), "cut at {len}");
    }
    let more = [&good[..], &prost::Message::encode_to_vec(&state(1, 1, 8))].concat();
    std::fs::write(&path, more).unwrap();
    assert!(load(&cache).is_err(), "something appended");
    let first_form = [b"mmgood\0\x01", &[0; 32][..]].concat();
    std::fs::write(&path, first_form).unwrap();
    assert!(load(&cache).unwrap_err().contains("of this version"));
}

#[tokio::test]
async fn what_control_said_to_others_or_before_is_refused() {
    let (ca, place) = (Ca::new(), Place::new());
    let cache = cache(&ca, &place, CORE);
    let path = place.state_dir().join("switch.last-good");
    let put = |message: Vec<u8>| {
        std::fs::write(&path, [b"mmgood\0\x02", &message[..]].concat()).unwrap();
    };
    put(ca.sealed(LEAF2, state(1, 1, 7)));
    let e = load(&cache).unwrap_err();
    assert!(
        e.contains(&format!("signed it for {LEAF2}, this is {CORE}")),
        "{e}"
    );
    put(Ca::new().sealed(CORE, state(1, 1, 7)));
    let e = load(&cache).unwrap_err();
    assert!(e.contains(": control did not sign it: "), "{e}");
    put(prost::Message::encode_to_vec(&state(1, 1, 7)));
    assert!(load(&cache).unwrap_err().contains("not a signed message"));

    // Of this agent, but of before: as from a backup of the disk.
    cache
        .store::<SwitchDesired>(&ca.sealed(CORE, state(2, 9, 7)))
        .unwrap();
    put(ca.sealed(CORE, state(2, 8, 7)));
    let e = load(&cache).unwrap_err();
    assert!(e.contains("term 2 and generation 8, older"), "{e}");
    put(ca.sealed(CORE, state(3, 1, 7)));
    assert_eq!(load(&cache), Ok(Some(state(3, 1, 7))));
    let foreign = cache.store::<SwitchDesired>(&ca.sealed(LEAF2, state(4, 1, 7)));
    assert!(foreign.is_err());
}

#[tokio::test]
async fn a_state_that_others_could_have_written_is_refused() {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
    let (ca, place) = (Ca::new(), Place::new());
    let cache = cache(&ca, &place, CORE);
    let path = place.state_dir().join("switch.last-good");
    let keep = || {
        cache
            .store::<SwitchDesired>(&ca.sealed(CORE, state(1, 1, 7)))
            .unwrap();
    };
    keep();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
    let e = load(&cache).unwrap_err();
    assert!(e.contains("others may write it"), "{e}");

    let elsewhere = place.state_dir().join("elsewhere");
    std::fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    let e = load(&cache).unwrap_err();
    assert!(e.contains("not a regular file"), "{e}");

    keep();
    assert_eq!(load(&cache), Ok(Some(state(1, 1, 7))));
    if !nix::unistd::geteuid().is_root() {
        println!("not run: files of other users need root");
        return;
    }
    chown(&path, Some(65534), None).unwrap();
    let e = load(&cache).unwrap_err();
    assert!(
        e.contains("belongs to user 65534, and the agent runs as user 0"),
        "{e}"
    );
    chown(&path, Some(0), None).unwrap();
    chown(place.state_dir(), Some(65534), None).unwrap();
    let e = StateDir::open(&place.state_dir()).unwrap_err();
    assert!(
        matches!(e, KitError::ForeignOwner { owner: 65534, .. }),
        "{e}"
    );
}

#[tokio::test]
async fn a_tampered_state_is_never_acted_on() {
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

    let path = place.state_dir().join("switch.last-good");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(4).position(|w| w == b"swp1").unwrap();
    bytes[at + 3] = b'2';
    std::fs::write(&path, bytes).unwrap();
    let agent = place.args(None).start(AgentKind::Core).await.unwrap();
    let mut follower = Follower::start(agent);
    follower.permits.add_permits(100);
    // The first that it acts on comes from control, once that is back.
    ca.desired.send_replace(state(2, 2, 2));
    let _control = Control::start_at(&ca, addr);
    assert_eq!(follower.next().await, (2, Origin::Live));
    follower.stop().await;
}

#[tokio::test]
async fn offline_goes_by_what_was_kept_and_dials_nobody() {
    let ca = Ca::new();
    let control = Control::start(&ca);
    let place = Place::new();
    let offline = |place: &Place| AgentArgs {
        offline: true,
        ..place.args(None)
    };
    let e = offline(&place).start(AgentKind::Core).await.unwrap_err();
    assert!(matches!(e, KitError::OfflineNotJoined), "{e}");
    let agent = joined(&ca, &place, &control).await;
    agent.close().await;
    let agent = offline(&place).start(AgentKind::Core).await.unwrap();
    let e = agent.require_last_good::<SwitchDesired>("switch");
    assert!(matches!(e, Err(KitError::NothingKept { .. })), "{e:?}");

    let agent = place.args(None).start(AgentKind::Core).await.unwrap();
    let mut follower = Follower::start(agent.clone());
    follower.permits.add_permits(100);
    assert_eq!(follower.next().await, (1, Origin::Live));
    follower.stop().await;
    agent.close().await;

    // Control is there and has news, and is not asked.
    ca.desired.send_replace(state(2, 2, 2));
    let agent = offline(&place).start(AgentKind::Core).await.unwrap();
    agent.require_last_good::<SwitchDesired>("switch").unwrap();
    let client: SwitchServiceClient = agent.client();
    let e = client.report(SwitchReport::default()).await.unwrap_err();
    assert!(e.is_transient() && e.message().contains("--offline"), "{e}");
    let mut follower = Follower::start(agent.clone());
    follower.permits.add_permits(100);
    assert_eq!(follower.next().await, (1, Origin::Cache));
    assert!(follower.seen.try_recv().is_err());
    assert_eq!(*agent.session().borrow(), proto_link::SessionState::Closed);
    follower.stop().await;
    let e = AgentArgs {
        offline: true,
        ..place.args(None)
    };
    let e = e.start(AgentKind::Bmc).await.unwrap_err();
    assert!(matches!(e, KitError::OnlyOrders { .. }), "{e}");
}
