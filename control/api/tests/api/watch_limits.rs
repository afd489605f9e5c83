//! How many watches there may be, and how each of them ends: read too slowly, or at a stop.

use std::time::Duration;

use control_store::WATCH_HISTORY_CHANGES;
use control_watch::WatchLimits;
use proto_public::metalmesh::admin::v1::WatchChangeType;
use proto_public::metalmesh::tenant::v1::ClaimServiceWatchRequest;
use tonic::Code;

use crate::claiming::Claims;
use crate::node::{Node, Wire};
use crate::watching::*;

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_a_user_are_bounded() {
    let limits = WatchLimits {
        per_user: 1,
        ..WatchLimits::default()
    };
    let node = Node::start_with(limits, WATCH_HISTORY_CHANGES).await;
    let first = all(node.as_admin(), &["partition"], 0).await.unwrap();
    let refused = all(node.as_admin(), &["partition"], 0).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("of this user"), "{refused}");
    drop(first);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_claims_count_with_the_others() {
    let limits = WatchLimits {
        per_user: 1,
        ..WatchLimits::default()
    };
    let node = Node::start_with(limits, WATCH_HISTORY_CHANGES).await;
    let (project, token) = node.tenant("acme").await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let request = ClaimServiceWatchRequest {
        project: project.clone(),
        ..Default::default()
    };
    let first = claims.watch(request.clone()).await.unwrap();
    let refused = claims.watch(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let mixed = of_project(node.wire(Some(&token)), &project, &["claim"]).await;
    assert_eq!(mixed.unwrap_err().code(), Code::ResourceExhausted);
    drop(first);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_is_read_slowly_is_cut_and_goes_on() {
    let limits = WatchLimits {
        // Nobody takes a message in no time.
        stall: Duration::ZERO,
        bookmark: Duration::from_millis(1),
        ..WatchLimits::default()
    };
    let node = Node::start_with(limits, WATCH_HISTORY_CHANGES).await;
    let mut watch = all(node.as_admin(), &["partition"], 0).await.unwrap();
    let (_, revision) = listed(&mut watch).await;
    let slow = end(&mut watch).await;
    assert_eq!(slow.code(), Code::Unavailable);
    assert!(slow.message().starts_with("MM-1702"), "{slow}");
    let at = format!("go on from revision {revision}");
    assert!(slow.message().contains(&at), "{slow}");
    partition(&node, "p1").await;
    let mut again = all(node.as_admin(), &["partition"], revision)
        .await
        .unwrap();
    let event = next(&mut again).await.unwrap();
    assert_eq!(
        brief(&event),
        [(WatchChangeType::Created, "partition", "p1")]
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_watches_with_where_to_go_on() {
    let node = Node::start().await;
    let mut watch = all(node.as_admin(), &["partition"], 0).await.unwrap();
    let (_, revision) = listed(&mut watch).await;
    let ((), status) = tokio::join!(node.stop(), end(&mut watch));
    assert_eq!(status.code(), Code::Unavailable);
    // What it does not watch may have changed since: the use of the token, for instance.
    let (_, rest) = status.message().split_once("go on from revision ").unwrap();
    let at: u64 = rest.split_once(';').unwrap().0.parse().unwrap();
    assert!(at >= revision, "{status}");
}

/// Not a measurement, but what a thousand must not cost: a minute.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_watches_hear_the_same() {
    const WATCHES: usize = 1000;
    const CONNECTIONS: usize = 8;
    let node = Node::start().await;
    let wires: Vec<Wire> = (0..CONNECTIONS).map(|_| node.as_admin()).collect();
    let mut watches = Vec::new();
    for wire in wires.iter().cycle().take(WATCHES) {
        let mut watch = all(wire.clone(), &["partition"], 0).await.unwrap();
        listed(&mut watch).await;
        watches.push(watch);
    }
    let began = std::time::Instant::now();
    for number in 0..10 {
        partition(&node, &format!("p{number}")).await;
    }
    let mut first = Vec::new();
    for watch in &mut watches {
        let mut seen = Vec::new();
        while seen.len() < 10 {
            seen.push(news(watch).await);
        }
        if first.is_empty() {
            first = seen;
        } else {
            assert_eq!(seen, first);
        }
    }
    println!("10 changes at {WATCHES} watches in {:?}", began.elapsed());
    drop(watches);
    node.stop().await;
}
