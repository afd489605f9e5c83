//! A Linux switch: one bridge and one VXLAN device per segment, through netlink.
//!
//! Segment 4000 is the bridge `mmb4000` with the tunnel `mmx4000` in it. There is no VLAN, no VRF
//! and no bridge VLAN filtering, so that any kernel with bridge and VXLAN will do. The bridge has
//! no address of its own: the switch is not a host in a tenant's segment. Broadcasts reach the
//! other switches by head-end replication, one all-zeros FDB entry per remote tunnel end.
//!
//! Quarantined ports are in the bridge `mmq`, which is never up.

mod apply;
mod observe;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::neighbour::NeighbourMessage;
use rtnetlink::{Handle, MulticastGroup, new_connection, new_multicast_connection};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::observation::Observation;
use crate::step::Step;

/// UDP port of VXLAN (RFC 7348 §5).
pub const VXLAN_PORT: u16 = 4789;

/// Configuration of the back-end.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of the front-panel ports: exact, or a prefix and `*` ("swp*").
    pub ports: Vec<String>,
    /// Underlay address of this switch: the source of its tunnels.
    pub vtep: IpAddr,
}

impl Config {
    /// `true` if a device is one of the front-panel ports.
    #[must_use]
    pub fn is_port(&self, name: &str) -> bool {
        self.ports
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => name.starts_with(prefix),
                None => name == pattern,
            })
    }
}

/// The network namespace that the process is in, as a switch. Needs `CAP_NET_ADMIN`.
#[derive(Debug)]
pub struct Linux {
    config: Config,
    handle: Handle,
    changed: Arc<Notify>,
    /// Tasks that drive both netlink sockets; they end when the back-end is dropped.
    _tasks: JoinSet<()>,
}

impl Linux {
    /// Opens the netlink sockets; call it inside a tokio runtime.
    ///
    /// # Errors
    /// When the sockets cannot be opened.
    pub fn open(config: Config) -> Result<Self, NosError> {
        let mut tasks = JoinSet::new();
        let (connection, handle, _) = new_connection().map_err(NosError::Open)?;
        tasks.spawn(connection);
        let changed = Arc::new(Notify::new());
        watch_links(&mut tasks, Arc::clone(&changed)).map_err(NosError::Open)?;
        Ok(Self {
            config,
            handle,
            changed,
            _tasks: tasks,
        })
    }

    async fn links(&self) -> Result<Vec<LinkMessage>, NosError> {
        collect("list links", self.handle.link().get().execute()).await
    }

    async fn forwarding_entries(&self) -> Result<Vec<NeighbourMessage>, NosError> {
        let request = self
            .handle
            .neighbours()
            .get()
            .set_address_family(AddressFamily::Bridge);
        collect("list forwarding entries", request.execute()).await
    }

    async fn view(&self) -> Result<observe::View, NosError> {
        let links = self.links().await?;
        let entries = self.forwarding_entries().await?;
        Ok(observe::View::new(&links, &entries))
    }
}

impl Nos for Linux {
    fn vendor(&self) -> &'static str {
        "linux"
    }

    fn version(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map(|v| v.trim().to_owned())
            .unwrap_or_default()
    }

    fn capabilities(&self) -> &'static [Capability] {
        &[Capability::PrivatePorts]
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        Ok(self.view().await?.observation(&self.config))
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        apply::apply(self, step).await
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Notifies `changed` of every change of a link, also those that this back-end makes: the kernel
/// does not say which process caused them.
fn watch_links(tasks: &mut JoinSet<()>, changed: Arc<Notify>) -> io::Result<()> {
    let (connection, _handle, mut messages) = new_multicast_connection(&[MulticastGroup::Link])?;
    tasks.spawn(connection);
    tasks.spawn(async move {
        while messages.next().await.is_some() {
            changed.notify_one();
        }
    });
    Ok(())
}

async fn collect<T>(
    action: &str,
    stream: impl Stream<Item = Result<T, rtnetlink::Error>>,
) -> Result<Vec<T>, NosError> {
    stream.try_collect().await.map_err(|e| failed(action, e))
}

fn failed(action: impl Into<String>, source: rtnetlink::Error) -> NosError {
    NosError::Netlink {
        action: action.into(),
        source: Box::new(source),
    }
}
