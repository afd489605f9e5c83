//! The table is Ironic's, and every phase and stage has its state.

mod edges;
mod phases;
mod stages;

use std::collections::BTreeMap;

use proto_types::{AllocationId, Asn, MachineId, ProjectId, Timestamp};
use uuid::Uuid;

use super::NodeState;
use crate::catalog::read::default_layout;
use crate::machine::entity::{Allocation, AllocationType, FirewallRules, Install, Machine, Phase};
use crate::meta::{Labels, Meta};
use crate::node::entity::{NodeContent, NodeRecord, ProvisionState};

/// Time of the verb, and of the machine's phase.
const BEGIN: Timestamp = Timestamp::from_ms(1_000_000);
/// Time at which the machine entered a later phase.
const LATER: Timestamp = Timestamp::from_ms(1_100_000);

fn allocation(is_begun: bool) -> Box<Allocation> {
    Box::new(Allocation {
        id: AllocationId::new(Uuid::nil()),
        created_at: BEGIN,
        updated_at: Timestamp::ZERO,
        generation: 1,
        created_by: String::new(),
        project: ProjectId::new(Uuid::nil()),
        name: String::new(),
        description: String::new(),
        hostname: String::new(),
        kind: AllocationType::Machine,
        image: "debian-12.0.0".parse().unwrap(),
        networking: crate::Networking::default(),
        layout: default_layout().unwrap(),
        networks: Vec::new(),
        asn: Asn(1),
        ssh_public_keys: Vec::new(),
        userdata: String::new(),
        labels: Labels::new(),
        placement_labels: Labels::new(),
        dns_servers: Vec::new(),
        ntp_servers: Vec::new(),
        firewall_rules: FirewallRules::default(),
        install: Install {
            begun: is_begun,
            ..Install::default()
        },
        events_before: 0,
        closed_to_project: false,
        replaces: None,
        claim: None,
    })
}

fn machine(phase: Phase, since: Timestamp) -> Machine {
    Machine {
        phase,
        reason: "why".to_owned(),
        ..Machine::seen(MachineId::new(Uuid::nil()), None, since)
    }
}

fn record(content: NodeContent) -> NodeRecord {
    NodeRecord {
        machine: MachineId::new(Uuid::nil()),
        meta: Meta::default(),
        alias: None,
        content,
        replaced_extra: BTreeMap::new(),
    }
}

/// State, target and error of a node as texts; the target of a stable state is empty.
fn shown(state: &NodeState) -> (&'static str, &'static str, &str) {
    let target = state.target.map_or("", ProvisionState::as_str);
    (state.state.as_str(), target, &state.error)
}
