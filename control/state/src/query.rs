//! Queries of readers: derived from the tables, never stored.

pub use crate::allocation::read::{named_allocation, pool_allocations};
pub use crate::catalog::read::{layout, match_layout, try_image};
pub use crate::claim::read::{host_of_claim, machine_of_claim, named_claim, project_claims};
pub use crate::cluster::read::{component, component_report_matters, settings};
pub use crate::firewall::apply::check_rules;
pub use crate::firewall::fault::{FirewallFault, firewall_faults};
pub use crate::firewall::health::FirewallAilment;
pub use crate::firewall::read::{
    firewall_allocation, firewall_report_matters, firewalls_of_set, rule_history,
    rule_sets_of_firewall,
};
pub use crate::firewall::replacement::firewall_replacement;
pub use crate::firewall::role::{FirewallRole, FirewallStanding, firewall_standing};
pub use crate::firewall::standby::{DISTANCE_MAX, StandbyCandidate, standby_distance};
pub use crate::holdings::{Counts, counts};
pub use crate::identity::read::is_certificate_good;
pub use crate::lease::read::tenured_machines;
pub use crate::machine::read::{
    allocatable_machines, cable_issues, cable_trouble, check_layout, machine_obstacle,
    machine_of_mac, missing_cables, open_orders, partition_machines, port_machine,
    project_machines, switch_machines, vpn_leaving,
};
pub use crate::network::read::{Usage, child_networks, network_ips, network_usage, project_ips};
pub use crate::node::provision::{NodeState, ProvisionEvent, node_state};
pub use crate::node::read::{
    card_machine, chassis_nodes, described_port, document_named, documents, group_named,
    group_of_id, node_children, node_named, node_of_alias, node_of_instance, port_named,
    port_of_id, project_documents,
};
pub use crate::pool::read::{pool_hosts, published_labels};
pub use crate::rollout::read::{
    AgentSight, agent_release, judged_agents, release_of_site, rollout,
};
pub use crate::rollout::report::agent_report_matters;
pub use crate::tenancy::read::{invite_is_backed, is_member_of_a_project, owns};
