//! Calls of both systems, by the same clients.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::http::Client;
use super::ours;
use super::rest::RestApi;
use crate::callers::CalledSystem;

/// Numbers for objects that are made: each is used once.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// A system that is asked, and how.
#[derive(Clone, Debug)]
pub(super) enum Asks {
    Ours(ours::Asks),
    Ironic(RestApi),
}

/// A kind of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// 1,000 machines.
    List,
    /// 1,000 machines with everything; of ours the same.
    ListDetail,
    /// One machine.
    Get,
    /// A machine that was not known.
    Create,
    /// A machine for a project.
    Allocate,
}

impl CalledSystem for Asks {
    type Work = Work;

    fn address(&self) -> SocketAddr {
        match self {
            Self::Ours(ours) => ours.address,
            Self::Ironic(ironic) => ironic.address,
        }
    }

    async fn call(&self, client: &mut Client, work: Work) -> Result<Duration> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let call = match (self, work) {
            (Self::Ours(it), Work::List | Work::ListDetail) => it.list(),
            (Self::Ours(it), Work::Get) => it.get(number),
            (Self::Ours(it), Work::Create) => it.create(number),
            (Self::Ours(it), Work::Allocate) => it.allocate(number),
            (Self::Ironic(it), Work::List) => it.list(),
            (Self::Ironic(it), Work::ListDetail) => it.list_detail(),
            (Self::Ironic(it), Work::Get) => it.get(number),
            (Self::Ironic(it), Work::Create) => it.create(number),
            (Self::Ironic(it), Work::Allocate) => return it.allocate(client, number).await,
        };
        Ok(client.call(&call).await?.1)
    }

    async fn warm(&self, client: &mut Client) -> Result<Duration> {
        self.call(client, Work::Get).await
    }

    /// Under load Ironic may refuse an allocation.
    fn may_fail(work: Work) -> bool {
        work == Work::Allocate
    }
}

impl Asks {
    /// How many machines a list answers.
    pub(super) async fn listed(&self) -> Result<usize> {
        let (list, field) = match self {
            Self::Ours(ours) => (ours.list(), "machines"),
            Self::Ironic(ironic) => (ironic.list(), "nodes"),
        };
        let answer = Client::new(self.address()).json(&list).await?;
        let machines = answer[field].as_array().context("no list was answered")?;
        Ok(machines.len())
    }
}
