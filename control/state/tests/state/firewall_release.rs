//! The release of the firewalls' agent: who is told of it.

use std::collections::BTreeSet;

use control_state::life::{concerned_firewalls, firewall_desired};
use control_state::*;
use proto_types::{Digest, MachineId};

use crate::firewall_standby::firewalls;
use crate::world::*;

fn set(version: &str, url: &str) -> SetFirewallRelease {
    SetFirewallRelease {
        version: version.into(),
        url: url.into(),
        head_digest: Digest::sha256([1; 32]),
    }
}

const URL: &str = "https://releases.example.com/metalmesh-firewall.release";

#[test]
fn every_firewall_is_told_of_the_release() {
    let mut world = firewalls(2);
    let told = |world: &World| {
        [1, 2].map(|number| {
            let desired = firewall_desired(&world.tables, id(number)).unwrap();
            desired.release.map(|release| release.version.clone())
        })
    };
    assert_eq!(told(&world), [None, None]);
    let concerned = |world: &mut World, op: Op| {
        let outcome = world.apply(op);
        outcome.result.unwrap();
        concerned_firewalls(&world.tables, &outcome.changes)
    };
    let all: BTreeSet<MachineId> = [id(1), id(2)].into();
    assert_eq!(concerned(&mut world, set("1.3.0", URL).into()), all);
    assert_eq!(told(&world), [Some("1.3.0".into()), Some("1.3.0".into())]);
    let row = world
        .tables
        .get::<FirewallRelease>(&FirewallRelease::SITE.into());
    let row = row.unwrap();
    assert_eq!((row.url.as_str(), row.set_at), (URL, world.now));
    assert_eq!(concerned(&mut world, RemoveFirewallRelease {}.into()), all);
    assert_eq!(told(&world), [None, None]);
    // Once more changes nothing.
    let none = concerned(&mut world, RemoveFirewallRelease {}.into());
    assert!(none.is_empty());
}

#[test]
fn a_release_in_a_wrong_form_is_refused() {
    let mut world = World::new();
    let long_url = format!("https://{}", "a".repeat(2048));
    for wrong in [
        set("", URL),
        set(&"1".repeat(65), URL),
        set("1.3.0", "http://releases.example.com/x"),
        set("1.3.0", ""),
        set("1.3.0", &long_url),
        SetFirewallRelease {
            head_digest: Digest::sha512([1; 64]),
            ..set("1.3.0", URL)
        },
    ] {
        assert_eq!(world.refused(wrong), ErrorCode::InvalidField);
    }
}

#[test]
fn an_older_control_node_is_not_sent_the_command() {
    assert_eq!(Op::from(set("1.3.0", URL)).level(), FIREWALL_RULES);
    assert_eq!(Op::from(RemoveFirewallRelease {}).level(), FIREWALL_RULES);
}
