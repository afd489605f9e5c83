//! The steps from one configuration to another.
//!
//! Order: who leaves goes first (neighbours, then VNIs, then instances), then VRFs, filters,
//! instances and neighbours come, and filters that nobody needs any more go last. At every step
//! a neighbour's filters are defined, and a prefix list or a route-map's new entry lets through
//! nothing that neither the old nor the new configuration does. VRFs come before filters only
//! because FRR takes longer for each VRF the more filters there are.

mod bgp;
mod filters;
mod refreshes;

use std::collections::BTreeSet;

use super::delta::{Block, FrrDelta};
use super::model::{BgpInstance, BgpVrf, FrrConfig, InterfaceName, Neighbour, Remote, VrfName};
use super::object::FrrObject;
use super::observed::Observed;
use super::render;

/// The steps from an observed state to a desired configuration. Foreign lines stay as they are,
/// except within an instance, a neighbour or a route-map's entry that goes altogether.
#[must_use]
pub fn diff(observed: &Observed, desired: &FrrConfig) -> FrrDelta {
    // The common case, which need not be spelled out line by line.
    if observed.config == *desired {
        return FrrDelta::default();
    }
    let mut plan = Plan {
        observed,
        old: &observed.config,
        new: desired,
        leaving: leaving_instances(&observed.config, desired),
        blocks: Vec::new(),
    };
    plan.neighbours_leave();
    plan.vnis_leave();
    plan.instances_leave();
    plan.router_id();
    plan.zebra_settings();
    plan.vnis_come();
    plan.filters_come();
    plan.instances_come();
    plan.groups_leave();
    plan.filters_leave();
    let refresh = refreshes::refreshes(&plan);
    FrrDelta {
        blocks: plan.blocks,
        refresh,
    }
}

/// Instances that must go, also those that come again with another autonomous system. FRR lets
/// the default one go only after all others.
fn leaving_instances(old: &FrrConfig, new: &FrrConfig) -> BTreeSet<BgpVrf> {
    let stays = |vrf: &BgpVrf, instance: &BgpInstance| {
        new.bgp
            .get(vrf)
            .is_some_and(|desired| desired.asn == instance.asn)
    };
    let default = old.bgp.get(&BgpVrf::Default);
    let all = default.is_some_and(|instance| !stays(&BgpVrf::Default, instance));
    old.bgp
        .iter()
        .filter(|(vrf, instance)| all || !stays(vrf, instance))
        .map(|(vrf, _)| *vrf)
        .collect()
}

/// A delta that is being made.
struct Plan<'a> {
    observed: &'a Observed,
    old: &'a FrrConfig,
    new: &'a FrrConfig,
    leaving: BTreeSet<BgpVrf>,
    blocks: Vec<Block>,
}

impl<'a> Plan<'a> {
    fn push(&mut self, object: FrrObject, lines: Vec<String>) {
        if !lines.is_empty() {
            self.blocks.push(Block { object, lines });
        }
    }

    /// The instance as the coming steps find it.
    fn kept(&self, vrf: BgpVrf) -> Option<&'a BgpInstance> {
        let gone = self.leaving.contains(&vrf);
        self.old.bgp.get(&vrf).filter(|_| !gone)
    }

    /// The neighbour as the coming steps find it. `None` if there is none, or it has left: FRR
    /// cannot move a neighbour between groups.
    fn kept_neighbour(&self, vrf: BgpVrf, name: &InterfaceName) -> Option<&'a Neighbour> {
        let had = self.kept(vrf)?.neighbours.get(name)?;
        let wanted = self.new.bgp.get(&vrf)?.neighbours.get(name)?;
        match (&had.remote, &wanted.remote) {
            (Remote::As(_), Remote::As(_)) => Some(had),
            (had_group, wanted_group) => (had_group == wanted_group).then_some(had),
        }
    }

    fn vnis_leave(&mut self) {
        for (vrf, vni) in &self.old.vrfs {
            if self.new.vrfs.get(vrf) != Some(vni) || self.vni_blocks(*vrf) {
                self.in_vrf(*vrf, format!(" no vni {vni}"));
            }
        }
    }

    fn vnis_come(&mut self) {
        for (vrf, vni) in &self.new.vrfs {
            if self.old.vrfs.get(vrf) != Some(vni) || self.vni_blocks(*vrf) {
                self.in_vrf(*vrf, format!(" vni {vni}"));
            }
        }
    }

    /// `true` if an instance cannot go while a VRF has a VNI: the VRF's own, or the default one.
    /// FRR makes a hidden instance for each VNI that has none, and the default one goes last.
    fn vni_blocks(&self, vrf: VrfName) -> bool {
        let leaves = |of: BgpVrf| self.leaving.contains(&of);
        leaves(BgpVrf::Tenant(vrf)) || leaves(BgpVrf::Default)
    }

    /// One line in the section of a VRF.
    fn in_vrf(&mut self, vrf: VrfName, line: String) {
        let lines = vec![format!("vrf {vrf}"), line, "exit-vrf".to_owned()];
        self.push(FrrObject::Vrf(vrf), lines);
    }

    fn router_id(&mut self) {
        if self.old.router_id == self.new.router_id {
            return;
        }
        let line = match (self.old.router_id, self.new.router_id) {
            (_, Some(id)) => render::router_id(id),
            (Some(id), None) => format!("no {}", render::router_id(id)),
            (None, None) => return,
        };
        self.push(FrrObject::RouterId, vec![line]);
    }

    fn zebra_settings(&mut self) {
        if self.old.has_zebra_settings == self.new.has_zebra_settings {
            return;
        }
        let lines = if self.new.has_zebra_settings {
            render::ZEBRA.map(str::to_owned).to_vec()
        } else {
            let leave = render::ZEBRA.iter().rev();
            leave.map(|line| format!("no {line}")).collect()
        };
        self.push(FrrObject::ZebraSettings, lines);
    }
}
