//! Indexes of networks and addresses.

use std::collections::BTreeMap;

use proto_types::ProjectId;

use crate::network::entity::{Ip, IpKey, Network};
use crate::tables::index::{Index, Indexed, insert, remove, subtract};

pub(crate) fn count(map: &mut BTreeMap<ProjectId, u32>, project: ProjectId) {
    *map.entry(project).or_default() += 1;
}

fn discount(map: &mut BTreeMap<ProjectId, u32>, project: ProjectId) {
    if let Some(number) = map.get_mut(&project) {
        *number = number.saturating_sub(1);
        if *number == 0 {
            map.remove(&project);
        }
    }
}

impl Indexed for Network {
    fn add_to(&self, index: &mut Index) {
        if let Some(project) = self.project {
            count(&mut index.project_networks, project);
        }
        if let Some(vrf) = self.vrf {
            *index.vrf_networks.entry(vrf).or_default() += 1;
        }
        if let Some(parent) = &self.parent {
            insert(&mut index.children, parent.clone(), self.id.clone());
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if let Some(project) = self.project {
            discount(&mut index.project_networks, project);
        }
        if let Some(vrf) = self.vrf {
            subtract(&mut index.vrf_networks, vrf);
        }
        if let Some(parent) = &self.parent {
            remove(&mut index.children, parent, &self.id);
        }
    }
}

impl Indexed for Ip {
    fn add_to(&self, index: &mut Index) {
        let key = IpKey {
            namespace: self.namespace,
            ip: self.ip,
        };
        insert(&mut index.network_ips, self.network.clone(), key);
        insert(&mut index.project_ips, self.project, key);
        if let Some(machine) = self.machine {
            insert(&mut index.machine_ips, machine, key);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        let key = IpKey {
            namespace: self.namespace,
            ip: self.ip,
        };
        remove(&mut index.network_ips, &self.network, &key);
        remove(&mut index.project_ips, &self.project, &key);
        if let Some(machine) = self.machine {
            remove(&mut index.machine_ips, &machine, &key);
        }
    }
}
