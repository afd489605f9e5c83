//! Hosts whose nodes withhold them.

use control_state::*;

use super::site::*;
use crate::nodes::{called, maintained, staged};
use crate::world::*;

#[test]
fn a_host_in_maintenance_is_not_bound() {
    let mut world = World::hosting(&[&[]]);
    world.change_node(1, maintained("fan"));
    assert!(!world.pool_host(1).seen.is_ready);
    world.ok(claim(1, 1, asking(&[])));
    assert_eq!(world.state(1), ClaimState::Pending);
    world.change_node(1, NodeContent::default());
    assert!(world.pool_host(1).seen.is_ready);
    assert_eq!(world.state(1), ClaimState::Bound);
}

#[test]
fn a_claim_keeps_its_host() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, asking(&[])));
    let managed = world.change(1, staged(ProvisionState::Manageable));
    assert_eq!(world.refused(managed), ErrorCode::HostBound);
    // In maintenance it stays bound, and is installed afterwards.
    world.change_node(1, maintained("fan"));
    world.ok(intent(1, installing(&[])));
    assert_eq!(world.state(1), ClaimState::Bound);
    world.change_node(1, NodeContent::default());
    assert_eq!(world.state(1), ClaimState::Provisioning);
}

#[test]
fn an_instance_of_the_node_ends_with_the_claim() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    world.change_node(
        1,
        NodeContent {
            instance_name: "web".into(),
            ..called("host")
        },
    );
    world.ok(deletion(1, 1));
    assert_eq!(world.node(1).content, called("host"));
}
