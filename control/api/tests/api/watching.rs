//! A client that watches: opens streams, reads them to where they are, and makes changes.

use std::time::Duration;

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1::watch_service_client::WatchServiceClient;
use proto_public::metalmesh::admin::v1::{
    WatchChange, WatchChangeType, WatchEvent, WatchServiceAllRequest, WatchServiceProjectRequest,
};
use tonic::{Status, Streaming};

use crate::node::{Node, Wire};

/// Longest wait for a message.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn next(watch: &mut Streaming<WatchEvent>) -> Result<WatchEvent, Status> {
    let next = tokio::time::timeout(PATIENCE, watch.message()).await;
    Ok(next
        .expect("no message came in time")?
        .expect("the watch ended"))
}

/// The next message that is no bookmark.
pub(crate) async fn news(watch: &mut Streaming<WatchEvent>) -> WatchEvent {
    loop {
        let event = next(watch).await.unwrap();
        if !event.changes.is_empty() {
            return event;
        }
    }
}

pub(crate) async fn end(watch: &mut Streaming<WatchEvent>) -> Status {
    loop {
        if let Err(status) = next(watch).await {
            return status;
        }
    }
}

/// Everything that was there, and where to go on.
pub(crate) async fn listed(watch: &mut Streaming<WatchEvent>) -> (Vec<WatchChange>, u64) {
    let mut all = Vec::new();
    loop {
        let event = next(watch).await.unwrap();
        all.extend(event.changes);
        if event.listed {
            return (all, event.revision);
        }
        assert_eq!(event.revision, 0);
    }
}

pub(crate) fn kinds(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) async fn all(
    wire: Wire,
    names: &[&str],
    from: u64,
) -> Result<Streaming<WatchEvent>, Status> {
    let request = WatchServiceAllRequest {
        kinds: kinds(names),
        id: String::new(),
        from_revision: from,
    };
    let answer = WatchServiceClient::new(wire).all(request).await?;
    Ok(answer.into_inner())
}

pub(crate) async fn of_project(
    wire: Wire,
    project: &str,
    names: &[&str],
) -> Result<Streaming<WatchEvent>, Status> {
    let request = WatchServiceProjectRequest {
        project: project.to_owned(),
        kinds: kinds(names),
        ..Default::default()
    };
    let answer = WatchServiceClient::new(wire).project(request).await?;
    Ok(answer.into_inner())
}

/// The permission to call methods that are the caller's own.
pub(crate) fn itself(methods: &[&str]) -> api::PermissionsByVisibility {
    let methods = api::SelfPermissions {
        methods: kinds(methods),
    };
    api::PermissionsByVisibility {
        visibility: Some(api::permissions_by_visibility::Visibility::Self_(methods)),
    }
}

/// Type, kind and id of each change.
pub(crate) fn brief(event: &WatchEvent) -> Vec<(WatchChangeType, &str, &str)> {
    let changes = event.changes.iter();
    changes
        .map(|change| (change.r#type(), change.kind.as_str(), change.id.as_str()))
        .collect()
}

pub(crate) async fn partition(node: &Node, id: &str) {
    let partition = api::Partition {
        id: id.into(),
        ..Default::default()
    };
    let request = admin::PartitionServiceCreateRequest {
        partition: Some(partition),
    };
    admin::partition_service_client::PartitionServiceClient::new(node.as_admin())
        .create(request)
        .await
        .unwrap();
}
