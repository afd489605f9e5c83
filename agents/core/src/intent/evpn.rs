//! The model of a switch whose partition speaks EVPN.

use std::collections::BTreeMap;

use agents_nos::model::{
    Bgp, BgpNeighbour, Gateway, Peer, PolicyName, PortName, RouteMap, SwitchModel, Table, Vrf,
    VrfName,
};
use agents_nos::{Capability, Membership, Vni};
use base_runtime::Chain;
use proto_mesh::{PortIntent, PortPlace, Segment, SwitchDesired};
use proto_types::Asn;

use super::session::{self, SessionKind};
use super::{insert_port, l2_segment};
use crate::config::Config;

/// Most VRFs of a switch; further ones are refused.
const VRFS_MAX: usize = 4096;
/// Most addresses of a gateway; a gateway with more is refused.
const GATEWAY_ADDRESSES_MAX: usize = 64;
/// The port in names of the spines' policies. Names of ports are escaped and never begin with it.
const SPINES: &str = "MM-_spines";

/// A model in the making.
pub(super) struct EvpnIntent<'a> {
    desired: &'a SwitchDesired,
    config: &'a Config,
    out: SwitchModel,
    /// VRFs by L3 VNI.
    vrfs: BTreeMap<u32, VrfName>,
    bgp: Option<Bgp>,
    problems: Vec<String>,
}

impl<'a> EvpnIntent<'a> {
    pub(super) fn new(desired: &'a SwitchDesired, config: &'a Config) -> Self {
        Self {
            desired,
            config,
            out: SwitchModel {
                vtep: Some(config.vtep),
                ..SwitchModel::default()
            },
            vrfs: BTreeMap::new(),
            bgp: None,
            problems: Vec::new(),
        }
    }

    /// The model, and the parts that it lacks.
    pub(super) fn build(mut self, capabilities: &[Capability]) -> (SwitchModel, Vec<String>) {
        self.bgp = self.bgp(capabilities);
        self.vrfs();
        let provisioning = self.segments();
        for port in &self.desired.ports {
            if !self.config.is_front(&port.name) {
                self.refuse(
                    &format!("port {}", port.name),
                    "it is an uplink or a spine's",
                );
                continue;
            }
            let place = self.place(port);
            insert_port(
                &mut self.out,
                &port.name,
                port.admin_up,
                place,
                &mut self.problems,
            );
        }
        for uplink in &self.config.uplinks {
            let place = provisioning.map_or(Membership::Quarantine, |vni| Membership::Segment {
                vni,
                is_private: false,
            });
            insert_port(&mut self.out, uplink, true, place, &mut self.problems);
        }
        self.spines();
        self.out.bgp = self.bgp;
        (self.out, self.problems)
    }

    fn refuse(&mut self, object: &str, reason: &str) {
        self.problems.push(format!("{object}: {reason}"));
    }

    /// BGP without neighbours. `None` if the switch cannot have it: routed ports stay in quarantine.
    fn bgp(&mut self, capabilities: &[Capability]) -> Option<Bgp> {
        let told = self.desired.bgp.clone().unwrap_or_default();
        let config = self.config.bgp.as_ref().map(|bgp| bgp.asn);
        let asn = (told.asn != 0).then_some(told.asn).or(config);
        let own = self.config.vtep.to_string();
        let router_id = if told.router_id.is_empty() {
            own
        } else {
            told.router_id
        };
        let made = match (asn, router_id.parse()) {
            _ if !capabilities.contains(&Capability::Bgp) => {
                Err("the switch lacks a BGP daemon".to_owned())
            }
            (None, _) => Err("the configuration has no [bgp] with its AS number".to_owned()),
            (_, Err(_)) => Err(format!("{router_id:?} is not an IPv4 address")),
            (Some(asn), Ok(id)) => Bgp::new(Asn(asn), id).map_err(|error| error.to_string()),
        };
        match made {
            Ok(bgp) => Some(bgp),
            Err(reason) => {
                self.refuse("BGP", &reason);
                None
            }
        }
    }

    fn vrfs(&mut self) {
        if self.desired.vrfs.len() > VRFS_MAX {
            self.refuse("VRFs", &format!("more than {VRFS_MAX}"));
        }
        for vrf in self.desired.vrfs.iter().take(VRFS_MAX) {
            let parts = (
                VrfName::new(&vrf.name),
                Vni::new(vrf.l3_vni),
                Table::new(vrf.table),
            );
            let (name, l3_vni, table) = match parts {
                (Ok(name), Ok(l3_vni), Ok(table)) => (name, l3_vni, table),
                (Err(error), _, _) | (_, _, Err(error)) => {
                    self.refuse("VRF", &error.to_string());
                    continue;
                }
                (_, Err(error), _) => {
                    self.refuse("VRF", &error.to_string());
                    continue;
                }
            };
            self.out.vrfs.insert(name.clone(), Vrf::new(l3_vni, table));
            if let Some(bgp) = &mut self.bgp {
                bgp.vrfs.entry(name.clone()).or_default();
            }
            self.vrfs.insert(vrf.l3_vni, name);
        }
    }

    /// The L2 segments. EVPN finds their remotes. Returns the one that machines boot in.
    fn segments(&mut self) -> Option<Vni> {
        let mut provisioning = None;
        for segment in &self.desired.segments {
            let vni = match Vni::new(segment.vni) {
                Ok(vni) => vni,
                Err(error) => {
                    self.problems.push(error.to_string());
                    continue;
                }
            };
            let mut made = l2_segment(segment, self.config, &mut self.problems);
            made.remotes.clear();
            made.gateway = self.gateway(segment);
            self.out.segments.insert(vni, made);
            provisioning = provisioning.or_else(|| segment.provisioning.then_some(vni));
        }
        provisioning
    }

    fn gateway(&mut self, segment: &Segment) -> Option<Gateway> {
        let told = segment.gateway.as_ref()?;
        let object = format!("gateway of segment {}", segment.vni);
        if told.addresses.len() > GATEWAY_ADDRESSES_MAX {
            self.refuse(
                &object,
                &format!("more than {GATEWAY_ADDRESSES_MAX} addresses"),
            );
            return None;
        }
        let addresses: Option<Vec<_>> = told.addresses.iter().map(|a| a.parse().ok()).collect();
        let Some(addresses) = addresses else {
            self.refuse(&object, "an address is not one with a prefix length");
            return None;
        };
        let made = VrfName::new(&told.vrf).and_then(|vrf| Gateway::new(vrf, addresses));
        match made {
            Ok(gateway) => Some(gateway),
            Err(error) => {
                self.refuse(&object, &error.to_string());
                None
            }
        }
    }

    /// The place of a port; its session goes to its VRF. A port whose place cannot be is in
    /// quarantine.
    fn place(&mut self, port: &PortIntent) -> Membership {
        let found = match PortPlace::try_from(port.place) {
            Ok(PortPlace::Quarantine) => return Membership::Quarantine,
            Ok(PortPlace::Segment) => self.in_segment(port, false),
            Ok(PortPlace::PrivateSegment) => self.in_segment(port, true),
            Ok(PortPlace::Routed) => self.routed(port),
            Ok(PortPlace::Underlay) => self.underlay(port),
            Ok(PortPlace::Unspecified) | Err(_) => Err("an unknown place".to_owned()),
        };
        found.unwrap_or_else(|reason| {
            self.refuse(&format!("port {}", port.name), &reason);
            Membership::Quarantine
        })
    }

    fn in_segment(&self, port: &PortIntent, is_private: bool) -> Result<Membership, String> {
        let vni = Vni::new(port.vni).map_err(|error| error.to_string())?;
        Ok(Membership::Segment { vni, is_private })
    }

    fn routed(&mut self, port: &PortIntent) -> Result<Membership, String> {
        let Some(vrf) = self.vrfs.get(&port.vni).cloned() else {
            return Err(format!("no VRF with the VNI {}", port.vni));
        };
        if self.bgp.is_none() {
            return Err("it needs BGP".to_owned());
        }
        if port.neighbour.is_some() {
            let session = self.session(port, SessionKind::Server)?;
            self.enter(port, Some(&vrf), session)?;
        }
        Ok(Membership::Routed(vrf))
    }

    /// A port in the default VRF reaches the underlay: without its filters it does not enter.
    fn underlay(&mut self, port: &PortIntent) -> Result<Membership, String> {
        if self.bgp.is_none() {
            return Err("it needs BGP".to_owned());
        }
        let session = self.session(port, SessionKind::Firewall)?;
        self.enter(port, None, session)?;
        Ok(Membership::Underlay)
    }

    fn session(&mut self, port: &PortIntent, kind: SessionKind) -> Result<BgpNeighbour, String> {
        let told = port.neighbour.as_ref().ok_or("no session")?;
        let policies = &mut self.out.policies;
        let made = session::session(policies, &port.name, told, kind);
        made.map_err(|error| Chain(&error).to_string())
    }

    fn enter(
        &mut self,
        port: &PortIntent,
        vrf: Option<&VrfName>,
        session: BgpNeighbour,
    ) -> Result<(), String> {
        let name = PortName::new(&port.name).map_err(|error| error.to_string())?;
        let bgp = self.bgp.as_mut();
        let neighbours = bgp.and_then(|bgp| bgp.neighbours_mut(vrf));
        let neighbours = neighbours.ok_or("no BGP instance")?;
        neighbours.insert(Peer::Interface(name), session);
        Ok(())
    }

    /// Links to spines: routed in the default VRF, with the routes of the underlay and of EVPN.
    fn spines(&mut self) {
        let spines = self.config.bgp.iter().flat_map(|bgp| &bgp.spines);
        for spine in spines.cloned().collect::<Vec<_>>() {
            let spine = spine.as_str();
            let made = self.spine(spine);
            let place = made.unwrap_or_else(|reason| {
                self.problems.push(format!("spine {spine}: {reason}"));
                Membership::Quarantine
            });
            insert_port(&mut self.out, spine, true, place, &mut self.problems);
        }
    }

    fn spine(&mut self, spine: &str) -> Result<Membership, String> {
        let name = PortName::new(spine).map_err(|error| error.to_string())?;
        let bgp = self.bgp.as_mut().ok_or("it needs BGP")?;
        let mut maps = Vec::new();
        for direction in ["in", "out"] {
            let map = PolicyName::new(&format!("{SPINES}-{direction}"));
            let map = map.map_err(|error| error.to_string())?;
            let every = RouteMap::new([session::permit([])]);
            let every = every.map_err(|error| error.to_string())?;
            self.out.policies.route_maps.insert(map.clone(), every);
            maps.push(map);
        }
        if let [import, export] = &maps[..] {
            let mut session = BgpNeighbour::filtered(import.clone(), export.clone());
            session.has_evpn = true;
            bgp.underlay.insert(Peer::Interface(name), session);
        }
        Ok(Membership::Underlay)
    }
}
