//! Ports, neighbours, gateways, tunnel ends and prefixes that go.

use super::kept::Kept;
use crate::model::Bgp;
use crate::step::Step;

pub(super) fn plan(change: &Kept<'_>, steps: &mut Vec<Step>) {
    ports_go_down(change, steps);
    neighbours_leave(change, steps);
    for port in change.observed.ports.keys() {
        if change.has_to_leave(port) {
            steps.push(Step::Quarantine { port: port.clone() });
        }
    }
    gateways_leave(change, steps);
    cut_remotes(change, steps);
    cut_prefixes(change, steps);
}

fn ports_go_down(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (name, seen) in &change.observed.ports {
        let wanted = change.target.ports.get(name);
        if seen.admin_up && wanted.is_some_and(|wanted| !wanted.admin_up) {
            let port = name.clone();
            steps.push(Step::SetAdmin { port, up: false });
        }
    }
}

fn neighbours_leave(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (vrf, neighbours) in change.observed.bgp.iter().flat_map(Bgp::instances) {
        let leaving = neighbours
            .keys()
            .filter(|port| !change.neighbour(vrf, port));
        steps.extend(leaving.map(|port| Step::RemoveNeighbour {
            vrf: vrf.cloned(),
            port: port.clone(),
        }));
    }
}

fn gateways_leave(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (vni, seen) in &change.observed.segments {
        // A segment that goes takes its gateway along.
        if seen.gateway.is_some() && change.segment(*vni) && !change.gateway(*vni) {
            steps.push(Step::SetGateway {
                vni: *vni,
                gateway: None,
            });
        }
    }
}

fn cut_remotes(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (vni, seen) in &change.observed.segments {
        if !change.segment(*vni) {
            continue;
        }
        let Some(wanted) = change.target.segments.get(vni) else {
            continue;
        };
        let cut = seen.remotes.difference(&wanted.remotes);
        steps.extend(cut.map(|remote| Step::RemoveRemote {
            vni: *vni,
            remote: *remote,
        }));
    }
}

fn cut_prefixes(change: &Kept<'_>, steps: &mut Vec<Step>) {
    for (id, seen) in &change.observed.policies.prefix_lists {
        let Some(wanted) = change.target.policies.prefix_lists.get(id) else {
            continue;
        };
        let cut = seen.rules.difference(&wanted.rules);
        steps.extend(cut.map(|rule| Step::RemovePrefix {
            list: id.clone(),
            rule: *rule,
        }));
    }
}
