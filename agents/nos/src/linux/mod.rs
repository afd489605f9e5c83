//! A Linux switch: bridges, VXLAN devices and VRFs through netlink, BGP and EVPN through FRR.
//!
//! Segment 4000 is the bridge `mmb4000` with the tunnel `mmx4000` in it, without VLAN filtering.
//! The bridge has no address of its own, unless the segment has a gateway: then it has the
//! gateway's addresses and the MAC address that all leaves share, in the VRF of the gateway.
//! Quarantined ports are in the bridge `mmq`, which is never up.
//!
//! Without FRR ([`Config::frr`]) there is no layer 3, so that any kernel with bridge and VXLAN
//! will do. Broadcasts reach the other switches by head-end replication, one all-zeros FDB entry
//! per remote tunnel end.
//!
//! With FRR:
//! - A VRF is a device of its name. L3 VNI 27 is the bridge `mmr27` in it, with the switch's router
//!   MAC, and the tunnel `mmx27`. The table ends with an unreachable default.
//! - EVPN tells who is where: tunnels learn nothing, bridges answer ARP and ND, and frames to unknown
//!   hosts stay. A segment with remotes learns, and is flooded by head-end replication.
//! - The address of the tunnels is the one on `lo` that has our mark; an operator's stay.
//! - Ports that are not routed have no IPv6 of their own.
//! - Three tables of nftables filter what ports send to the switch and what firewalls send into the
//!   underlay. Without FRR there are the same where the host has nft.
//! - After a boot, a machine's port comes up only when EVPN has been up for some seconds.
//! - Steps go to FRR as the difference of whole configurations: what is ours and differs is
//!   repaired with the next step.
//! - A pass reads FRR's configuration at its start and after each change of it, to verify the
//!   change; nothing else reads it.

mod apply;
mod bridge_entry;
mod layer3;
mod link;
mod names;
mod neighbours;
mod packet_filter;
mod requests;
mod routed;
mod routing;
mod segments;
mod telemetry;
mod view;
mod vrfs;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use agents_router_macs::DeviceNames;
use futures::{Stream, StreamExt, TryStreamExt};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::packet_route::neighbour::NeighbourMessage;
use rtnetlink::packet_route::rule::RuleMessage;
use rtnetlink::{
    Handle, IpVersion, MulticastGroup, RouteMessageBuilder, new_connection,
    new_multicast_connection,
};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use self::layer3::Layer3;
use self::packet_filter::FilterReading;
pub use self::packet_filter::{FilterConfig, NftError, decode as decode_packet_filter};
use self::view::View;
use crate::back_end::{Nos, NosError};
use crate::capability::Capability;
use crate::frr::announced::AnnouncedPrefix;
use crate::frr::{InterfaceName, Vtysh};
use crate::model::PortName;
use crate::observation::Observation;
use crate::router::Router;
use crate::step::Step;
use crate::telemetry::Telemetry;

/// UDP port of VXLAN (RFC 7348 §5).
pub const VXLAN_PORT: u16 = 4789;

/// Configuration of the back-end.
#[derive(Clone, Debug)]
pub struct Config {
    /// Names of the front-panel ports: exact, or a prefix and `*` ("swp*").
    pub ports: Vec<String>,
    /// Underlay address of this switch: the source of its tunnels. With FRR, the desired state
    /// has the address, and this one is not used.
    pub vtep: IpAddr,
    /// The way to FRR, which makes the switch a leaf with VRFs, BGP and EVPN. `None` means that
    /// there is none.
    pub frr: Option<Vtysh>,
    /// The site's part of the packet filter.
    pub filter: FilterConfig,
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
    /// For telemetry, which is read while a pass goes on: the kernel refuses a second listing on a
    /// socket while the first goes on.
    counters: Handle,
    changed: Arc<Notify>,
    filter_reading: FilterReading,
    /// `true` if ports are filtered: with FRR always, because firewalls need it.
    has_filter: bool,
    /// `None` on a switch without FRR.
    router: Option<Router>,
    /// Tasks that drive the netlink sockets; they end when the back-end is dropped.
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
        let (connection, counters, _) = new_connection().map_err(NosError::Open)?;
        tasks.spawn(connection);
        let changed = Arc::new(Notify::new());
        watch_links(&mut tasks, Arc::clone(&changed)).map_err(NosError::Open)?;
        if config.frr.is_some() {
            let names = DeviceNames {
                bridge: names::ROUTED_PREFIX,
                tunnel: names::TUNNEL_PREFIX,
            };
            agents_router_macs::keep(names, &mut tasks).map_err(NosError::Open)?;
        }
        let loopback = InterfaceName::loopback();
        let router = config.frr.clone().map(|vtysh| Router::new(vtysh, loopback));
        let has_filter = router.is_some() || packet_filter::is_installed();
        if !has_filter {
            tracing::warn!("no nft (Debian package nftables): ports are not filtered");
        }
        Ok(Self {
            config,
            has_filter,
            router,
            handle,
            counters,
            changed,
            filter_reading: FilterReading::default(),
            _tasks: tasks,
        })
    }

    /// The entries that tunnels flood by. Others are dropped as they are read: there are as many as
    /// machines have MAC addresses.
    async fn flood_entries(&self) -> Result<Vec<NeighbourMessage>, NosError> {
        let request = self
            .handle
            .neighbours()
            .get()
            .set_address_family(AddressFamily::Bridge);
        let entries = request.execute().try_filter(|entry| {
            let floods = view::flood_entry(entry).is_some();
            std::future::ready(floods)
        });
        collect("list forwarding entries", entries).await
    }

    async fn rules(&self) -> Result<Vec<RuleMessage>, NosError> {
        let mut rules = Vec::new();
        for family in [IpVersion::V4, IpVersion::V6] {
            let request = self.handle.rule().get(family);
            rules.extend(collect("list rules", request.execute()).await?);
        }
        Ok(rules)
    }

    async fn layer3(&self) -> Result<Layer3, NosError> {
        let addresses = self.handle.address().get().execute();
        let addresses = collect("list addresses", addresses).await?;
        let v4 = RouteMessageBuilder::<Ipv4Addr>::new().build();
        let v6 = RouteMessageBuilder::<Ipv6Addr>::new().build();
        let mut routes = Vec::new();
        for of_family in [v4, v6] {
            let request = self.handle.route().get(of_family).execute();
            routes.extend(collect("list routes", request).await?);
        }
        Ok(Layer3::new(&addresses, &self.rules().await?, &routes))
    }

    /// Every device with what the switch needs to know of it.
    async fn view(&self) -> Result<View, NosError> {
        let links = links(&self.handle).await?;
        let entries = self.flood_entries().await?;
        let layer3 = match self.router {
            Some(_) => Some(self.layer3().await?),
            None => None,
        };
        Ok(View::new(&links, &entries, layer3))
    }

    /// The switch without FRR.
    async fn observe_unrouted(&self) -> Result<Observation, NosError> {
        let mut observation = self.view().await?.observation(&self.config);
        if self.has_filter {
            self.filter_reading.begin_pass();
            observation.model.packet_filter = self.packet_filter().await?;
        }
        Ok(observation)
    }

    /// Every device alone.
    async fn devices(&self) -> Result<View, NosError> {
        Ok(View::new(&links(&self.handle).await?, &[], None))
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
        match (&self.router, self.has_filter) {
            (None, false) => &[
                Capability::PrivatePorts,
                Capability::PrivateTunnels,
                Capability::LocalSegments,
                Capability::Remotes,
            ],
            (None, true) => &[
                Capability::PrivatePorts,
                Capability::PrivateTunnels,
                Capability::LocalSegments,
                Capability::Remotes,
                Capability::PacketFilter,
            ],
            (Some(_), _) => &[
                Capability::PrivatePorts,
                Capability::PrivateTunnels,
                Capability::LocalSegments,
                Capability::Remotes,
                Capability::Underlay,
                Capability::Vrfs,
                Capability::Bgp,
                Capability::PacketFilter,
            ],
        }
    }

    async fn observe(&self) -> Result<Observation, NosError> {
        match &self.router {
            None => self.observe_unrouted().await,
            Some(router) => {
                self.filter_reading.begin_pass();
                router.observe(self).await
            }
        }
    }

    async fn observe_applied(&self) -> Result<Observation, NosError> {
        match &self.router {
            None => self.observe().await,
            Some(router) => router.observe_applied(self).await,
        }
    }

    async fn apply(&self, step: &Step) -> Result<(), NosError> {
        self.apply_all(std::slice::from_ref(step)).await
    }

    async fn apply_all(&self, steps: &[Step]) -> Result<(), NosError> {
        if let Some(router) = &self.router {
            return router.apply(self, steps).await;
        }
        for step in steps {
            self.apply_to_kernel(step).await?;
        }
        Ok(())
    }

    async fn changed(&self) {
        self.changed.notified().await;
    }

    async fn announced(&self, port: &PortName) -> Result<Vec<AnnouncedPrefix>, NosError> {
        match &self.router {
            None => Ok(Vec::new()),
            Some(router) => router.announced(port).await,
        }
    }

    async fn telemetry(&self) -> Result<Telemetry, NosError> {
        self.read_telemetry().await
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

async fn links(handle: &Handle) -> Result<Vec<LinkMessage>, NosError> {
    collect("list links", handle.link().get().execute()).await
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
