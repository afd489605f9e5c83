//! The transport of a single node.

use std::io;

use futures::future::BoxFuture;

use crate::channel::Channel;
use crate::transport::{ClusterMember, Lane, Transport};

/// The transport of a cluster of one node: there is nobody to reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPeers;

impl Transport for NoPeers {
    fn open(&self, member: &ClusterMember, _lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let message = format!(
            "node {} is unreachable: this node runs without peers",
            member.node
        );
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::Unsupported, message)) })
    }
}
