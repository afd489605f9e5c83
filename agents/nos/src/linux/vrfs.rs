//! Steps of VRFs and of the loopback.

use std::net::IpAddr;
use std::time::Duration;

use rtnetlink::packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage,
};
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::InfoVxlan;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute};
use rtnetlink::{LinkMessageBuilder, LinkVrf};

use super::layer3::Rules;
use super::link::{Kind, Link};
use super::names::{LOOPBACK, l3_vni_of, routed_name, router_mac};
use super::requests::{ESRCH, change, host, let_route, unreachable_defaults};
use super::routed::L3_MTU;
use super::view::View;
use super::{Linux, failed};
use crate::back_end::NosError;
use crate::model::{Vrf, VrfName};
use crate::vni::Vni;

/// Priority of the rule for VRFs: the kernel's own choice.
const L3MDEV_PRIORITY: u32 = 1000;
/// Priority of the rule for the switch's own addresses, the last before the main table's.
const LOCAL_PRIORITY: u32 = 32_765;
/// Time that zebra gets to forget the routes of a VRF before its device goes.
const SETTLE: Duration = Duration::from_millis(500);
/// Table of the switch's own addresses.
const LOCAL_TABLE: u32 = 255;

impl Linux {
    pub(super) async fn ensure_vrf(
        &self,
        view: &View,
        name: &VrfName,
        vrf: Vrf,
    ) -> Result<(), NosError> {
        let device: &str = name.as_ref();
        let table = vrf.table.get();
        let index = match view.by_name(device) {
            Some(link) if link.kind == (Kind::Vrf { table }) => link.index,
            Some(_) => return Err(NosError::NotOurs(device.to_owned())),
            None => {
                let made = LinkMessageBuilder::<LinkVrf>::new(device).table_id(table);
                self.add_link(made.build(), device).await?
            }
        };
        // The table ends before a port enters the VRF: it never leads anywhere else. Not before the
        // device: zebra takes a table for the default VRF's that has a route when its VRF comes, and
        // looks at it after it is freed with the VRF (FRR 8.4.4, mended upstream by 7395e399b1).
        self.guard(table).await?;
        let up = change(index).up().build();
        self.set(up, || format!("bring {device} up")).await?;
        // Packets of a VRF are routed as if its device had received them.
        let_route(device)?;
        match vrf.l3_vni {
            Some(vni) => self.carry(view, vni, index).await,
            None => Ok(()),
        }
    }

    /// Ends a table with an unreachable default for each family.
    async fn guard(&self, table: u32) -> Result<(), NosError> {
        for route in unreachable_defaults(table) {
            let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewRoute(route));
            request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
            let action = format!("end table {table}");
            self.send(request, &action, super::requests::EEXIST).await?;
        }
        Ok(())
    }

    /// Makes the devices of an L3 VNI.
    async fn carry(&self, view: &View, vni: Vni, vrf: u32) -> Result<(), NosError> {
        let name = routed_name(vni);
        let bridge = self.ensure_bridge(view, &name).await?;
        let tunnel = self.ensure_tunnel(view, vni).await?;
        if let Some(vtep) = view.vtep(&self.config) {
            let mac = change(bridge).address(router_mac(vtep).to_vec()).build();
            self.set(mac, || format!("set the MAC address of {name}"))
                .await?;
        }
        let enter = change(bridge).controller(vrf).build();
        self.set(enter, || format!("put {name} into its VRF"))
            .await?;
        let_route(&name)?;
        self.join(vni, &name, bridge, tunnel, L3_MTU).await
    }

    /// Removes a VRF from the kernel, after FRR has given it up.
    pub(super) async fn remove_vrf(&self, view: &View, name: &VrfName) -> Result<(), NosError> {
        let device: &str = name.as_ref();
        let Some(link) = view.by_name(device) else {
            return Ok(());
        };
        let Kind::Vrf { table } = link.kind else {
            return Err(NosError::NotOurs(device.to_owned()));
        };
        let bridges = view
            .links
            .iter()
            .filter(|l| l.controller == Some(link.index));
        for (vni, bridge) in bridges.filter_map(|l| Some((l3_vni_of(l)?, l))) {
            self.remove_bridge(view, vni, &bridge.name).await?;
        }
        for route in unreachable_defaults(table) {
            let mut request = NetlinkMessage::from(RouteNetlinkMessage::DelRoute(route));
            request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
            let action = format!("clear table {table}");
            self.send(request, &action, ESRCH).await?;
        }
        // Nobody is in the VRF any more: its empty table leads nowhere. zebra 8.4.4 crashed around
        // this removal, for an unknown cause; with an empty VRF that is down for a moment it did so
        // less often.
        let down = change(link.index).down().build();
        self.set(down, || format!("bring {device} down")).await?;
        tokio::time::sleep(SETTLE).await;
        self.delete(link).await
    }

    /// Moves the rule `local` behind the one for VRFs. There is one at every moment: without it
    /// the switch would not hear its neighbours.
    pub(super) async fn put_l3mdev_first(&self) -> Result<(), NosError> {
        for family in [AddressFamily::Inet, AddressFamily::Inet6] {
            let all = self.rules().await?;
            if !all.iter().any(|rule| rule.header.family == family) {
                continue;
            }
            let rules = Rules::read(&all, family);
            let first = match rules.l3mdev {
                // A rule at 0 leaves no room in front of it.
                Some(first) if first > 0 => first,
                _ => {
                    self.add_rule(family, L3MDEV_PRIORITY, None).await?;
                    L3MDEV_PRIORITY
                }
            };
            if !rules.local.iter().any(|(priority, _)| *priority > first) {
                let priority = LOCAL_PRIORITY.max(first.saturating_add(1));
                self.add_rule(family, priority, Some(LOCAL_TABLE)).await?;
            }
            for (priority, rule) in rules.local {
                if priority <= first {
                    let deleted = self.handle.rule().del(rule).execute().await;
                    deleted.map_err(|e| failed("remove the early rule local", e))?;
                }
            }
        }
        Ok(())
    }

    /// Adds a rule for a table, or for the tables of VRFs.
    async fn add_rule(
        &self,
        family: AddressFamily,
        priority: u32,
        table: Option<u32>,
    ) -> Result<(), NosError> {
        let request = self.handle.rule().add().priority(priority);
        let request = request
            .table_id(table.unwrap_or(0))
            .action(RuleAction::ToTable);
        let mut request = request.replace();
        let message = request.message_mut();
        message.header.family = family;
        if table.is_none() {
            message.attributes.push(RuleAttribute::L3MDev(true));
        }
        let added = request.execute().await;
        added.map_err(|e| failed(format!("add rule {priority}"), e))
    }

    /// Sets the address of the loopback, and of the tunnels and router MACs that hang on it.
    pub(super) async fn set_vtep(&self, view: &View, address: IpAddr) -> Result<(), NosError> {
        let lo = view.find(LOOPBACK)?;
        let up = change(lo.index).up().build();
        self.set(up, || format!("bring {LOOPBACK} up")).await?;
        self.add_address(lo, host(address)).await?;
        let addresses = view
            .layer3
            .as_ref()
            .map_or(&[][..], |l3| l3.addresses(lo.index));
        for old in addresses.iter().filter(|old| old.is_ours) {
            if old.address.addr() != address {
                self.remove_address(lo, old.address).await?;
            }
        }
        for link in &view.links {
            if link.name.starts_with("mmx") && matches!(link.kind, Kind::Vxlan { .. }) {
                self.move_tunnel(link, address).await;
            }
            if l3_vni_of(link).is_some() {
                let mac = change(link.index).address(router_mac(address).to_vec());
                let name = &link.name;
                self.set(mac.build(), || format!("set the MAC address of {name}"))
                    .await?;
            }
        }
        Ok(())
    }

    /// Gives a tunnel another source. A kernel that cannot leaves it broken, and the tunnel is
    /// made again.
    async fn move_tunnel(&self, link: &Link, address: IpAddr) {
        let source = match address {
            IpAddr::V4(address) => InfoVxlan::Local(address),
            IpAddr::V6(address) => InfoVxlan::Local6(address),
        };
        let action = format!("move {}", link.name);
        if let Err(error) = self.set_tunnel(link, vec![source], &action).await {
            tracing::debug!(device = %link.name, error = %error, "cannot change the tunnel's source");
        }
    }
}
