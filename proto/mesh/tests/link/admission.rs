//! Many agents that come back at once, and a control that dies in the middle of it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proto_identity::{Credential, Roots, tls};
use proto_link::limits::{BUSY_MAX, BUSY_MIN};
use proto_link::*;
use proto_mesh::*;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fixture::*;

const NODE: &str = "spiffe://mesh.test/node/1";
/// Two busy cores, handshakes without optimisation.
const CROWD_PATIENCE: Duration = Duration::from_secs(120);

fn agent(ca: &Ca, number: usize) -> Credential {
    ca.issue(
        &format!("spiffe://mesh.test/partition/p1/core/leaf{number}"),
        HOUR,
    )
}

/// Agents that share a socket, as those of one simulation do.
struct Crowd {
    meshes: Vec<MeshClient>,
    /// How many sessions there were.
    came: Arc<watch::Sender<usize>>,
    /// When those who found no place were told to come back.
    told: Arc<Mutex<Vec<Duration>>>,
    _watchers: JoinSet<()>,
}

impl Crowd {
    fn new(ca: &Ca, addr: SocketAddr, count: usize) -> Self {
        let socket = Socket::bind().unwrap();
        let came = Arc::new(watch::Sender::new(0));
        let told = Arc::new(Mutex::new(Vec::new()));
        let mut watchers = JoinSet::new();
        let meshes = (0..count).map(|number| {
            let credential = agent(ca, number);
            let roots = Roots::Certificates(ca.roots());
            let tls = tls::client_config(roots, Some(&credential), ALPN).unwrap();
            let addresses = vec![addr.to_string()];
            let mesh = MeshClient::on(MeshClientConfig::new(addresses, tls), &socket).unwrap();
            let (mut state, came) = (mesh.state(), came.clone());
            let told = Arc::clone(&told);
            watchers.spawn(async move {
                state.mark_changed();
                while state.changed().await.is_ok() {
                    match &*state.borrow_and_update() {
                        SessionState::Up => came.send_modify(|count| *count += 1),
                        SessionState::Down(Some(DialError::Busy { retry_in, .. })) => {
                            told.lock().unwrap().push(*retry_in);
                        }
                        _ => {}
                    }
                }
            });
            mesh
        });
        Self {
            meshes: meshes.collect(),
            came,
            told,
            _watchers: watchers,
        }
    }

    async fn came(&self, wanted: usize) {
        let mut came = self.came.subscribe();
        let all = timeout(CROWD_PATIENCE, came.wait_for(|count| *count >= wanted)).await;
        let all = all.map(|count| *count.unwrap());
        assert!(all.is_ok(), "{} of {wanted} came", *came.borrow());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_is_let_in_at_a_steady_rate_and_told_when_to_come_back() {
    let ca = Ca::new();
    let rate = AdmissionRate {
        per_second: 10,
        at_once: 10,
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Server::start_with(&ca, &ca.issue(NODE, HOUR), any, |server| {
        server.with_admission(rate).unwrap()
    });
    let began = Instant::now();
    let crowd = Crowd::new(&ca, server.addr, 60);
    crowd.came(60).await;
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(4),
        "fifty places take five seconds: {took:?}"
    );
    let told = crowd.told.lock().unwrap().clone();
    assert!(told.len() >= 30, "{} of 60 were sent away", told.len());
    assert!(told.iter().all(|wait| (BUSY_MIN..=BUSY_MAX).contains(wait)));
    let (soonest, latest) = (told.iter().min().unwrap(), told.iter().max().unwrap());
    let span = *latest - *soonest;
    assert!(span >= Duration::from_secs(2), "spread: {span:?}");
    for mesh in &crowd.meshes {
        let switches = SwitchServiceClient::from(mesh.clone());
        switches.report(SwitchReport::default()).await.unwrap();
    }
}

#[tokio::test]
async fn who_is_revoked_takes_no_place() {
    let ca = Ca::new();
    let rate = AdmissionRate {
        per_second: 1,
        at_once: 1,
    };
    let any = "127.0.0.1:0".parse().unwrap();
    let server = Server::start_with(&ca, &ca.issue(NODE, HOUR), any, |server| {
        server.with_admission(rate).unwrap()
    });
    let stolen = agent(&ca, 2);
    let bearer = PeerIdentity::from_certificate(&stolen.chain[0]).unwrap();
    server.revoked.add(bearer.fingerprint);
    let roots = || Roots::Certificates(ca.roots());
    let thief = client(server.addr, roots(), Some(&stolen));
    let is_revoked =
        |s: &SessionState| matches!(s, SessionState::Down(Some(DialError::Revoked { .. })));
    until(&thief, is_revoked).await;
    let again = || {
        server
            .presence
            .turned_away()
            .iter()
            .any(|who| who.times > 2)
    };
    eventually("it comes again and again", again).await;
    let good = client(server.addr, roots(), Some(&agent(&ca, 1)));
    let switches = SwitchServiceClient::from(good);
    switches.report(SwitchReport::default()).await.unwrap();
    let stats = server.presence.stats();
    assert!(
        stats.handshakes.contains(&(Handshake::TooMany, 0)),
        "{stats:?}"
    );
    assert!(
        stats.handshakes.contains(&(Handshake::Done, 1)),
        "{stats:?}"
    );
}

/// A control that dies as by `kill -9`: nobody is told.
struct Mortal {
    server: Server,
    runtime: Runtime,
}

impl Mortal {
    fn start(ca: &Ca, node: &Credential, bind: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let server = {
            let _inside = runtime.enter();
            Server::start_at(ca, node, bind)
        };
        Self { server, runtime }
    }

    fn kill(self) {
        self.runtime.shutdown_background();
    }
}

/// The socket of one that was killed is free once its threads are gone.
async fn start_again(ca: &Ca, node: &Credential, bind: SocketAddr) -> Mortal {
    let end = Instant::now() + PATIENCE;
    while std::net::UdpSocket::bind(bind).is_err() {
        assert!(Instant::now() < end, "the socket is never free");
        tokio::task::yield_now().await;
    }
    Mortal::start(ca, node, bind)
}

/// Each agent has something to say from now on, and says it until it was heard.
fn all_report(crowd: &Crowd, heard: &Arc<watch::Sender<usize>>, tasks: &mut JoinSet<()>) {
    for mesh in &crowd.meshes {
        let switches = SwitchServiceClient::from(mesh.clone());
        let heard = Arc::clone(heard);
        tasks.spawn(async move {
            while let Err(e) = switches.report(SwitchReport::default()).await {
                assert!(e.is_transient(), "{e}");
            }
            heard.send_modify(|count| *count += 1);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn control_killed_in_the_middle_of_a_thousand_reconnects() {
    const AGENTS: usize = 1000;
    let ca = Ca::new();
    let node = ca.issue(NODE, HOUR);
    let first = Mortal::start(&ca, &node, "127.0.0.1:0".parse().unwrap());
    let addr = first.server.addr;
    let crowd = Crowd::new(&ca, addr, AGENTS);
    crowd.came(AGENTS).await;

    let heard = Arc::new(watch::Sender::new(0));
    let mut tasks = JoinSet::new();
    first.kill();
    all_report(&crowd, &heard, &mut tasks);
    let second = start_again(&ca, &node, addr).await;
    crowd.came(AGENTS + AGENTS / 2).await;
    second.kill();
    let back = *crowd.came.borrow() - AGENTS;
    assert!(back < AGENTS, "in the middle: {back} were back");
    all_report(&crowd, &heard, &mut tasks);
    let third = start_again(&ca, &node, addr).await;
    let mut heard = heard.subscribe();
    let all = timeout(CROWD_PATIENCE, heard.wait_for(|count| *count == 2 * AGENTS)).await;
    let all = all.map(|count| *count.unwrap());
    assert!(
        all.is_ok(),
        "{} of {} were heard",
        *heard.borrow(),
        2 * AGENTS
    );
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    third.kill();
}
