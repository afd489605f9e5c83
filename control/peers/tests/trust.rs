//! Admission of control nodes: certificates, removal and floods of handshakes.
#![expect(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use control_peers::{ALPN, PeerLink};
use control_pki::PeerCredential;
use control_state::{Op, RemoveNode};
use control_store::{ClusterMember, Lane, Store, StoreConfig, Transport};
use futures::{SinkExt, StreamExt};
use proto_identity::profile::{Authority, Purpose};
use proto_identity::{CertificateRequest, Credential, Key, members};
use tempfile::TempDir;
use tests_support::{announcement, propose};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const HOUR: Duration = Duration::from_secs(3600);
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// The authority of one cluster.
struct Ca {
    peers: Authority,
    agents: Authority,
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

impl Ca {
    fn new() -> Self {
        let root = Authority::root("mesh.test", now_ms()).unwrap();
        Self {
            peers: root.intermediate(Purpose::Peers, now_ms()).unwrap(),
            agents: root.intermediate(Purpose::Agents, now_ms()).unwrap(),
        }
    }

    fn credential(&self, by: &Authority, id: &str) -> PeerCredential {
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let leaf = by.issue(&id.parse().unwrap(), &request, now_ms(), HOUR);
        let anchor = self.peers.certificate().clone();
        let own = Credential {
            key,
            chain: vec![leaf.unwrap(), by.certificate().clone()],
            roots: vec![anchor.clone()],
        };
        PeerCredential {
            own,
            anchors: vec![anchor],
        }
    }

    fn peer(&self, node: u64) -> PeerCredential {
        self.credential(&self.peers, &format!("spiffe://mesh.test/peer/{node}"))
    }
}

/// A node that answers.
struct Served {
    address: String,
    store: Store,
    stop: CancellationToken,
    tasks: JoinSet<()>,
    _dir: TempDir,
}

impl Served {
    async fn start(credential: PeerCredential) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(StoreConfig::new(dir.path(), 1, "test"));
        let store = store.await.unwrap();
        let link = PeerLink::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        link.set_credential(credential).unwrap();
        let address = link.local_addr().unwrap().to_string();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(link.run(store.clone(), stop.clone()));
        Self {
            address,
            store,
            stop,
            tasks,
            _dir: dir,
        }
    }

    fn member(&self, node: u64) -> ClusterMember {
        let address = self.address.clone();
        ClusterMember { node, address }
    }

    async fn end(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        self.store.shutdown().await;
    }
}

fn caller(credential: PeerCredential) -> PeerLink {
    let link = PeerLink::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    link.set_credential(credential).unwrap();
    link
}

#[tokio::test]
async fn nodes_of_a_cluster_reach_each_other() {
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    let link = caller(ca.peer(2));
    let mut channel = link.open(&served.member(1), Lane::Control).await.unwrap();
    // No hello: the store on the other side ends the channel, and the connection stays.
    channel
        .outgoing
        .send(Bytes::from_static(b"x"))
        .await
        .unwrap();
    assert!(
        channel
            .incoming
            .next()
            .await
            .is_none_or(|frame| frame.is_err())
    );
    link.open(&served.member(1), Lane::Control).await.unwrap();
    served.end().await;
}

#[tokio::test]
async fn a_node_of_another_cluster_is_refused_by_name() {
    let (ours, theirs) = (Ca::new(), Ca::new());
    let served = Served::start(theirs.peer(1)).await;
    let link = caller(ours.peer(2));
    let refused = link
        .open(&served.member(1), Lane::Append)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied, "{refused}");
    let said = refused.to_string();
    assert!(said.contains("is not node 1 of this cluster"), "{said}");
    assert!(said.contains(&served.address), "{said}");
    served.end().await;
}

#[tokio::test]
async fn another_node_at_the_address_is_refused() {
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    let link = caller(ca.peer(2));
    let refused = link
        .open(&served.member(3), Lane::Append)
        .await
        .unwrap_err();
    let said = refused.to_string();
    assert!(said.contains("is not node 3 of this cluster"), "{said}");
    served.end().await;
}

#[tokio::test]
async fn without_a_certificate_nobody_is_reached() {
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    let link = PeerLink::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let refused = link
        .open(&served.member(1), Lane::Append)
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("no certificate"), "{refused}");
    served.end().await;
}

#[tokio::test]
async fn a_removed_node_is_cut_off_and_stays_out() {
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    let link = caller(ca.peer(2));
    let mut open = link.open(&served.member(1), Lane::Forward).await.unwrap();
    for op in [Op::from(announcement(2)), Op::from(RemoveNode { id: 2 })] {
        propose(&served.store, op).await.unwrap();
    }
    // What was open ends, though its certificate is good for an hour.
    let ended = tokio::time::timeout(PATIENCE, open.incoming.next()).await;
    assert!(ended.unwrap().is_none_or(|frame| frame.is_err()));
    // Nothing opens any more, and the node learns why.
    let opened = link.open(&served.member(1), Lane::Control).await;
    if let Ok(mut channel) = opened {
        let ended = tokio::time::timeout(PATIENCE, channel.incoming.next()).await;
        assert!(ended.unwrap().is_none_or(|frame| frame.is_err()));
    }
    drop(link.open(&served.member(1), Lane::Control).await);
    let told = tokio::time::timeout(PATIENCE, link.removed().cancelled_owned());
    told.await.unwrap();
    // A fresh certificate changes nothing: it is the number that is refused.
    let again = caller(ca.peer(2));
    if let Ok(mut channel) = again.open(&served.member(1), Lane::Forward).await {
        let ended = tokio::time::timeout(PATIENCE, channel.incoming.next()).await;
        assert!(ended.unwrap().is_none_or(|frame| frame.is_err()));
    }
    served.end().await;
}

/// Calls with a certificate that is good for something else, past our own checks.
async fn word_of(ca: &Ca, credential: PeerCredential, served: &Served) -> Result<(), String> {
    let trusted = [ca.peers.certificate().clone()];
    let tls = members::client_config(&trusted, &credential.own, 1, ALPN).unwrap();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let address = served.address.parse().unwrap();
    let connecting = endpoint.connect_with(config, address, "peer").unwrap();
    let connection = connecting.await.map_err(|e| e.to_string())?;
    // In TLS 1.3 a client learns of a refusal with its first word.
    let (mut send, mut receive) = connection.open_bi().await.map_err(|e| e.to_string())?;
    send.write_all(&[0, 0, 0, 1, 9])
        .await
        .map_err(|e| e.to_string())?;
    match receive.read_to_end(64).await {
        Err(e) => Err(e.to_string()),
        Ok(_) => Ok(()),
    }
}

#[tokio::test]
async fn an_agent_never_speaks_raft() {
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    assert_eq!(word_of(&ca, ca.peer(2), &served).await, Ok(()));
    for agent in [
        "spiffe://mesh.test/partition/p1/core/leaf1",
        "spiffe://mesh.test/machine/0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f",
    ] {
        let credential = ca.credential(&ca.agents, agent);
        let refused = word_of(&ca, credential, &served).await;
        assert!(refused.is_err(), "{agent}");
    }
    // Nor does an agents' intermediate that names a peer.
    let forged = ca.credential(&ca.agents, "spiffe://mesh.test/peer/2");
    assert!(word_of(&ca, forged, &served).await.is_err());
    served.end().await;
}

/// A relay that passes only retries back to the caller: handshakes begin from another address and
/// never complete.
async fn half_way(front: UdpSocket, back: UdpSocket, node: SocketAddr) {
    let (mut packet, mut answer) = ([0; 2048], [0; 2048]);
    let mut caller = None;
    loop {
        tokio::select! {
            Ok((len, from)) = front.recv_from(&mut packet) => {
                caller = Some(from);
                back.send_to(&packet[..len], node).await.unwrap();
            }
            Ok(len) = back.recv(&mut answer) => {
                let is_retry = answer[0] & 0xf0 == 0xf0;
                if let Some(caller) = caller.filter(|_| is_retry) {
                    front.send_to(&answer[..len], caller).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_handshakes_of_one_address_leave_places_to_nodes() {
    const FLOOD: usize = 300;
    let ca = Ca::new();
    let served = Served::start(ca.peer(1)).await;
    let node: SocketAddr = served.address.parse().unwrap();
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let at = front.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(half_way(front, back, node));
    let own = ca.credential(&ca.agents, "spiffe://mesh.test/partition/p1/core/leaf1");
    let trusted = [ca.peers.certificate().clone()];
    let tls = members::client_config(&trusted, &own.own, 1, ALPN).unwrap();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut begun = Vec::new();
    for number in 0..FLOOD {
        begun.push(endpoint.connect_with(config.clone(), at, "peer").unwrap());
        if number % 16 == 0 {
            // Packets go out while this task rests.
            tokio::task::yield_now().await;
        }
    }
    let link = caller(ca.peer(2));
    let opened = tokio::time::timeout(PATIENCE, async {
        while link.open(&served.member(1), Lane::Control).await.is_err() {}
    });
    let began = Instant::now();
    opened.await.unwrap();
    // Before the first of those handshakes was given up.
    assert!(
        began.elapsed() < Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
    served.end().await;
}
