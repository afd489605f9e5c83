//! Clusters: replication, elections, membership, forwarding and refusals.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::mesh::{Mesh, fill, only_snapshot, wait_for};
use super::*;
use crate::wire::{self, Hello};
use crate::{
    Channel, ClusterMember, Lane, MemberChange, MembershipError, PeerRefusal, ProposeError,
    StartMode, StateMachine, StoreError, Transport,
};

async fn holds(store: &Store<Ledger>, key: &str, value: &str) {
    wait_for(&format!("{key} on node {}", store.node_id()), || async {
        let found = store.read_local(|l| l.entries.get(key).cloned()).unwrap();
        found.as_deref() == Some(value)
    })
    .await;
}

pub(super) async fn leads(stores: &[Store<Ledger>]) -> Store<Ledger> {
    let mut leader = None;
    wait_for("a leader", || {
        leader = stores.iter().find(|s| s.is_leader()).cloned();
        let led = leader.clone();
        async move {
            match led {
                Some(led) => led.read(|_| ()).await.is_ok(),
                None => false,
            }
        }
    })
    .await;
    leader.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_acknowledges_all_have() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    for n in 0..50 {
        put(&stores[0], &format!("key-{n}"), "value").await;
    }
    for store in &stores {
        holds(store, "key-49", "value").await;
        let state = store.read_local(Ledger::clone).unwrap();
        assert_eq!(state, stores[0].read_local(Ledger::clone).unwrap());
    }
    let appends = mesh.opened(Lane::Append);
    assert!(appends < 20, "one channel serves many entries: {appends}");
    let members = stores[0].members();
    assert!(members.iter().all(|m| m.is_voter && m.heard_ms.is_some()));
    assert_eq!(members[1].address, "memory:2");
    for store in &stores {
        store.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_others_go_on_without_the_leader_and_it_catches_up() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    put(&stores[0], "before", "value").await;
    mesh.cut_off(1);
    let leader = leads(&stores[1..]).await;
    put(&leader, "after", "value").await;
    let term = leader.term();
    mesh.heal();
    holds(&stores[0], "after", "value").await;
    assert_eq!(
        leader.term(),
        term,
        "a member that comes back unseats no leader"
    );
    mesh.stop(2).await;
    let begin = StartMode::Join(stores[0].cluster_id());
    let again = mesh.start(mesh.config(dir.path(), 2, begin)).await;
    holds(&again, "after", "value").await;
    for store in [&stores[0], &again, &stores[2]] {
        store.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_fell_silent_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    let follower = &stores[1];
    put(follower, "before", "value").await;
    let opened = mesh.opened(Lane::Forward);
    mesh.silence(1);
    let put_in = |key: &str| {
        let (store, key) = (follower.clone(), key.to_owned());
        async move {
            let value = "value".to_owned();
            store.propose(&(), &LedgerCommand::Put { key, value }).await
        }
    };
    // All three use the open channel, on which no answer ever comes.
    let (lost, repeated, read) =
        tokio::join!(put_in("lost"), put_in("repeatable"), follower.read(|_| ()));
    let Err(ProposeError::Store(StoreError::OutcomeUnknown { reason })) = lost else {
        panic!("nobody knows what became of it: {lost:?}");
    };
    assert!(reason.contains("the leader was lost"), "{reason}");
    // The next leader answered the requests without effect and the idempotent one.
    repeated.unwrap();
    read.unwrap();
    put_in("after").await.unwrap();
    assert!(mesh.opened(Lane::Forward) <= opened + 2, "no dialling on");
    let (leader, keys) = (
        leads(&stores[1..]).await,
        ["after", "before", "repeatable"].map(str::to_owned),
    );
    let found = leader.read(|l| l.entries.keys().cloned().collect::<Vec<_>>());
    assert_eq!(found.await.unwrap(), keys);
    let revision = leader.read(Ledger::revision).await.unwrap();
    assert_eq!(revision, 3, "each was carried out once");
    for store in &stores {
        store.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_member_gets_a_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let config = StoreConfig {
        keep_entries: 0,
        snapshot_bytes_per_second: Some(50 << 20),
        ..mesh.config(dir.path(), 1, StartMode::Form)
    };
    let first = mesh.start(config).await;
    for n in 0..20 {
        put(&first, &format!("key-{n}"), &"x".repeat(100_000)).await;
    }
    only_snapshot(&first).await;
    let begin = StartMode::Join(first.cluster_id());
    let second = mesh.start(mesh.config(dir.path(), 2, begin)).await;
    assert!(
        !second.is_leader(),
        "a node that waits to join forms no cluster"
    );
    mesh.add(&first, 2).await;
    holds(&second, "key-19", &"x".repeat(100_000)).await;
    assert!(mesh.opened(Lane::Snapshot) > 0);
    put(&first, "later", "value").await;
    holds(&second, "later", "value").await;
    mesh.stop(2).await;
    let second = mesh.start(mesh.config(dir.path(), 2, begin)).await;
    holds(&second, "later", "value").await;
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_handed_over_and_a_member_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    let remove = |node| MemberChange::Remove { node };
    let refused = stores[0].change_members_here(&remove(1)).await;
    assert_eq!(refused, Err(MembershipError::Leads { node: 1 }));
    let lead = MemberChange::Lead { node: 2 };
    stores[0].change_members_here(&lead).await.unwrap();
    let leader = leads(&stores).await;
    assert_eq!(leader.node_id(), 2);
    wait_for("node 1 to be heard", || async {
        leader.change_members_here(&remove(1)).await.is_ok()
    })
    .await;
    assert_eq!(leader.members().len(), 2);
    put(&leader, "key", "value").await;
    mesh.cut_off(3);
    wait_for("silence", || async {
        let members = leader.members();
        members
            .iter()
            .any(|m| m.heard_ms.is_some_and(|ms| ms > 3500))
    })
    .await;
    let refused = leader.change_members_here(&remove(3)).await;
    assert_eq!(refused, Err(StoreError::NoQuorum.into()));
    for store in &stores {
        store.shutdown().await;
    }
}

/// Sends `hello` and returns the refusal, which both sides must get.
async fn say_hello(store: &Store<Ledger>, certified: u64, hello: Hello) -> PeerRefusal {
    let (mut near, far) = Channel::pair(4);
    near.send(wire::say(&hello).unwrap()).await.unwrap();
    let refused = store.serve_peer(certified, far).await.unwrap_err();
    let heard = wire::hear::<()>(&near.next().await.unwrap()).unwrap_err();
    let cause = |e: std::io::Error| {
        let cause = e.into_inner().unwrap();
        *cause.downcast::<PeerRefusal>().unwrap()
    };
    let heard = cause(heard);
    assert_eq!(cause(refused), heard);
    heard
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_turned_away_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let hello = Hello {
        version: wire::VERSION,
        cluster: store.cluster_id(),
        from: 2,
        to: 1,
        lane: Lane::Append,
    };
    let other = uuid::Uuid::new_v4();
    let cluster = Hello {
        cluster: other,
        ..hello.clone()
    };
    let refusal = say_hello(&store, 2, cluster).await;
    assert!(
        refusal.to_string().contains(&other.to_string()),
        "{refusal}"
    );
    let wrong = Hello {
        to: 3,
        ..hello.clone()
    };
    let refusal = say_hello(&store, 2, wrong).await;
    assert_eq!(refusal, PeerRefusal::OtherNode { wanted: 3, ours: 1 });
    let refusal = say_hello(&store, 4, hello.clone()).await;
    let expected = PeerRefusal::OtherSender {
        certified: 4,
        said: 2,
    };
    assert_eq!(refusal, expected);
    let newer = Hello {
        version: 99,
        ..hello
    };
    let refusal = say_hello(&store, 2, newer).await;
    assert_eq!(
        refusal,
        PeerRefusal::Version {
            from: 2,
            theirs: 99
        }
    );
    store.shutdown().await;
}

/// A transport that breaks the first snapshot channels after some frames.
#[derive(Debug)]
struct Fragile {
    inner: Arc<dyn Transport>,
    breaks: Arc<std::sync::atomic::AtomicUsize>,
    frames: Arc<std::sync::atomic::AtomicUsize>,
}

impl Transport for Fragile {
    fn open(
        &self,
        member: &ClusterMember,
        lane: Lane,
    ) -> BoxFuture<'static, std::io::Result<Channel>> {
        use std::sync::atomic::Ordering::Relaxed;
        let opening = self.inner.open(member, lane);
        let (breaks, frames) = (self.breaks.clone(), self.frames.clone());
        Box::pin(async move {
            let channel = opening.await?;
            if lane != Lane::Snapshot {
                return Ok(channel);
            }
            let breaks_here = breaks
                .fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1))
                .is_ok();
            let mut sent = 0;
            let outgoing = futures::SinkExt::with(channel.outgoing, move |frame| {
                sent += 1;
                frames.fetch_add(1, Relaxed);
                std::future::ready(if breaks_here && sent > 6 {
                    Err(std::io::Error::other("the wire broke"))
                } else {
                    Ok(frame)
                })
            });
            let outgoing = Box::pin(outgoing);
            Ok(Channel {
                outgoing,
                ..channel
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_snapshot_goes_on_where_it_broke() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let mut config = mesh.config(dir.path(), 1, StartMode::Form);
    config.keep_entries = 0;
    let frames = Arc::new(AtomicUsize::new(0));
    let breaks = Arc::new(AtomicUsize::new(2));
    config.transport = Arc::new(Fragile {
        inner: config.transport,
        breaks: breaks.clone(),
        frames: frames.clone(),
    });
    let first = mesh.start(config).await;
    fill(&first).await;
    only_snapshot(&first).await;
    let begin = StartMode::Join(first.cluster_id());
    let second = mesh.start(mesh.config(dir.path(), 2, begin)).await;
    mesh.add(&first, 2).await;
    wait_for("the snapshot", || async {
        second.read_local(|l| l.entries.len()).unwrap() == 8
    })
    .await;
    assert_eq!(breaks.load(Ordering::Relaxed), 0);
    let pieces = 8 * 500_000 / (256 << 10);
    let sent = frames.load(Ordering::Relaxed);
    println!("{sent} frames for {pieces} pieces");
    assert!(sent < pieces + 3 * 12, "nothing is sent twice: {sent}");
    let (left, right) = (
        first.read(Ledger::clone).await,
        second.read_local(Ledger::clone),
    );
    assert_eq!(left.unwrap(), right.unwrap());
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_writes_and_reads() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    let mut tasks = tokio::task::JoinSet::new();
    for (number, store) in stores.iter().enumerate() {
        let (writer, reader) = (store.clone(), stores[(number + 1) % 3].clone());
        tasks.spawn(async move {
            for n in 0..20 {
                let key = format!("{number}-{n}");
                put(&writer, &key, "value").await;
                let own = writer.read_local(|l| l.entries.contains_key(&key));
                assert!(own.unwrap(), "a node has what it acknowledged");
                let seen = reader.read(|l| l.entries.contains_key(&key)).await;
                assert!(seen.unwrap(), "acknowledged on one node, read on another");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let refused = stores[1].propose(&(), &LedgerCommand::Refuse).await;
    assert!(matches!(
        refused,
        Err(crate::ProposeError::Rejected(Refused))
    ));
    let lead = MemberChange::Lead { node: 3 };
    stores[1].change_members(&(), &lead).await.unwrap();
    put(&stores[0], "after", "value").await;
    assert!(stores[2].is_leader());
    for store in &stores {
        store.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_that_is_cut_off_neither_writes_nor_reads() {
    let dir = tempfile::tempdir().unwrap();
    let mesh = Arc::new(Mesh::default());
    let stores = mesh.cluster(dir.path(), 3).await;
    put(&stores[2], "before", "value").await;
    mesh.cut_off(3);
    put(&stores[1], "after", "value").await;
    assert!(stores[2].read(|_| ()).await.is_err(), "no stale read");
    let command = LedgerCommand::Put {
        key: "lost".into(),
        value: "value".into(),
    };
    assert!(stores[2].propose(&(), &command).await.is_err());
    mesh.heal();
    let seen = stores[2].read(|l| l.entries.contains_key("after")).await;
    assert!(seen.unwrap());
    for store in &stores {
        store.shutdown().await;
    }
}
