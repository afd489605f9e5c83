//! Steps of instances, groups and neighbours.

use super::Plan;
use crate::frr::model::{BgpInstance, BgpVrf, Family, InterfaceName, Neighbour, PeerSettings};
use crate::frr::object::FrrObject;
use crate::frr::render::instance_header;
use crate::frr::settings::{self, changes};

impl Plan<'_> {
    pub(super) fn neighbours_leave(&mut self) {
        for (vrf, instance) in &self.old.bgp {
            for name in instance.neighbours.keys() {
                if self.kept_neighbour(*vrf, name).is_some() {
                    continue;
                }
                let lines = vec![format!(" no neighbor {name} interface")];
                let object = FrrObject::Neighbour(*vrf, name.clone());
                self.push(object, within(*vrf, instance, lines));
            }
        }
    }

    pub(super) fn instances_leave(&mut self) {
        // In reverse: the default VRF's instance is first, and must go last.
        for (vrf, instance) in self.old.bgp.iter().rev() {
            if self.leaving.contains(vrf) {
                let line = format!("no {}", instance_header(*vrf, instance));
                self.push(FrrObject::Instance(*vrf), vec![line]);
            }
        }
    }

    pub(super) fn instances_come(&mut self) {
        for (vrf, instance) in &self.new.bgp {
            // With hundreds of VRFs, to compare instances is far cheaper than their lines.
            if self.kept(*vrf) == Some(instance) {
                continue;
            }
            self.instance_comes(*vrf, instance);
            for (name, group) in &instance.groups {
                let had = self.kept(*vrf).and_then(|kept| kept.groups.get(name));
                let (made, now) = settings::group(name.as_str(), group);
                let before = had.map(|had| settings::group(name.as_str(), had));
                let mut lines = session_changes(before, made, &now);
                let had = had.map(|had| &had.settings);
                lines.extend(peer_families(name.as_str(), had, &group.settings));
                let object = FrrObject::Group(*vrf, name.clone());
                self.push(object, within(*vrf, instance, lines));
            }
            for (name, neighbour) in &instance.neighbours {
                self.neighbour_comes(*vrf, instance, name, neighbour);
            }
        }
    }

    fn instance_comes(&mut self, vrf: BgpVrf, instance: &BgpInstance) {
        let kept = self.kept(vrf);
        let before = kept.map(settings::instance).unwrap_or_default();
        let mut lines = indented(1, changes(&before, &settings::instance(instance)));
        for family in Family::ALL {
            let before = kept.map(|kept| settings::instance_family(kept, family));
            let now = settings::instance_family(instance, family);
            let changed = changes(&before.unwrap_or_default(), &now);
            lines.extend(in_family(family, changed));
        }
        self.push(FrrObject::Instance(vrf), within(vrf, instance, lines));
    }

    fn neighbour_comes(
        &mut self,
        vrf: BgpVrf,
        instance: &BgpInstance,
        name: &InterfaceName,
        neighbour: &Neighbour,
    ) {
        let had = self.kept_neighbour(vrf, name);
        let (made, now) = settings::neighbour(name.as_str(), neighbour);
        let before = had.map(|had| settings::neighbour(name.as_str(), had));
        let mut lines = session_changes(before, made, &now);
        let had = had.map(|had| &had.settings);
        lines.extend(peer_families(name.as_str(), had, &neighbour.settings));
        let object = FrrObject::Neighbour(vrf, name.clone());
        self.push(object, within(vrf, instance, lines));
    }

    pub(super) fn groups_leave(&mut self) {
        for (vrf, instance) in &self.new.bgp {
            let Some(kept) = self.kept(*vrf) else {
                continue;
            };
            for name in kept.groups.keys() {
                if instance.groups.contains_key(name) {
                    continue;
                }
                let lines = vec![format!(" no neighbor {name} peer-group")];
                let object = FrrObject::Group(*vrf, name.clone());
                self.push(object, within(*vrf, instance, lines));
            }
        }
    }
}

/// Lines inside of an instance, with those that enter and leave it. No lines stay none.
fn within(vrf: BgpVrf, instance: &BgpInstance, mut lines: Vec<String>) -> Vec<String> {
    if !lines.is_empty() {
        lines.insert(0, instance_header(vrf, instance));
        lines.push("exit".to_owned());
    }
    lines
}

/// Changes of a peer outside of its address families.
fn session_changes(
    before: Option<(String, Vec<settings::Setting>)>,
    made: String,
    now: &[settings::Setting],
) -> Vec<String> {
    let (had, before) = before.map_or((None, Vec::new()), |(had, before)| (Some(had), before));
    let mut lines = Vec::new();
    if had.as_ref() != Some(&made) {
        lines.push(made);
    }
    lines.extend(changes(&before, now));
    indented(1, lines)
}

/// Changes of a peer in its address families.
fn peer_families(name: &str, had: Option<&PeerSettings>, now: &PeerSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for family in Family::ALL {
        let before = had.map(|had| settings::peer_family(name, had.families.of(family)));
        let now = settings::peer_family(name, now.families.of(family));
        let changed = changes(&before.unwrap_or_default(), &now);
        lines.extend(in_family(family, changed));
    }
    lines
}

fn in_family(family: Family, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let mut all = vec![format!(" address-family {family}")];
    all.extend(indented(2, lines));
    all.push(" exit-address-family".to_owned());
    all
}

fn indented(depth: usize, lines: Vec<String>) -> Vec<String> {
    let indent = " ".repeat(depth);
    lines
        .into_iter()
        .map(|line| format!("{indent}{line}"))
        .collect()
}
