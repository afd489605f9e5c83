//! Calls of Ironic's REST API that both systems get, by the same clients.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;

use crate::api::http::Client;
use crate::api::rest::RestApi;
use crate::callers::CalledSystem;

/// Clients that work together.
const MANY_CLIENTS: usize = 4;

/// Numbers for objects that are made: each is used once.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A kind of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeWork {
    /// Every node, in pages of 1,000.
    List,
    /// A node that was not known.
    Create,
    /// An allocation, until it is active.
    Allocate,
}

/// Calls of both systems: so many clients make so many together.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairedStep {
    pub(super) work: NodeWork,
    pub(super) clients: usize,
    pub(super) calls: usize,
}

impl NodeWork {
    /// Name in the JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::Allocate => "allocate",
        }
    }

    /// Its name in the table.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::List => "list of all",
            Self::Create => "create",
            Self::Allocate => "allocation until active",
        }
    }
}

impl CalledSystem for RestApi {
    type Work = NodeWork;

    fn address(&self) -> SocketAddr {
        self.address
    }

    async fn call(&self, client: &mut Client, work: NodeWork) -> Result<Duration> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        match work {
            NodeWork::List => {
                let mut took = Duration::ZERO;
                for page in self.list_all() {
                    took += client.call(&page).await?.1;
                }
                Ok(took)
            }
            NodeWork::Create => Ok(client.call(&self.create(number)).await?.1),
            NodeWork::Allocate => self.allocate(client, number).await,
        }
    }

    async fn warm(&self, client: &mut Client) -> Result<Duration> {
        Ok(client.call(&self.get(0)).await?.1)
    }

    /// Under load Ironic may refuse an allocation.
    fn may_fail(work: NodeWork) -> bool {
        work == NodeWork::Allocate
    }
}

/// The steps with so many nodes. An allocation costs Ironic the more the more nodes are free, up to
/// seconds, so that there are few of them; both systems get as many.
pub(super) fn steps(nodes: u32) -> [PairedStep; 5] {
    let (lists, allocations) = match nodes {
        ..=499 => (30, 20),
        500..=2_999 => (20, 10),
        _ => (5, 6),
    };
    let step = |work, clients, calls| PairedStep {
        work,
        clients,
        calls,
    };
    [
        step(NodeWork::List, 1, lists),
        step(NodeWork::Allocate, 1, allocations),
        step(NodeWork::Allocate, MANY_CLIENTS, 2 * allocations),
        // At the end: the nodes that they make are in no list before.
        step(NodeWork::Create, 1, 40),
        step(NodeWork::Create, MANY_CLIENTS, 120),
    ]
}
