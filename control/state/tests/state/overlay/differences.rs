//! The differences of a switch.

use control_state::*;
use proto_types::Timestamp;

use super::{as_desired, found, running, switch, world};
use crate::world::*;

#[test]
fn a_difference_has_its_field_and_its_cause() {
    let mut world = world("evpn");
    running(&mut world, 1);
    assert_eq!(found(&world, "leaf1"), vec![]);
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();

    let mut report = as_desired(&world, "leaf1", "swp1");
    let port = report.ports.get_mut("swp1").unwrap();
    port.place = ObservedPlace::Other;
    port.vni = proto_types::Vni::try_from(proto_types::VNI_MAX).unwrap();
    port.admin_up = false;
    let health = report.health.as_mut().unwrap();
    health.drift = vec![
        ObjectDrift {
            object: "port swp1".into(),
            noticed_at: Timestamp::from_ms(5),
            is_held: true,
            ..ObjectDrift::default()
        },
        ObjectDrift {
            object: "route map MM-swp1-in".into(),
            seen: "missing".into(),
            desired: "1 permit rules with 2 matches".into(),
            noticed_at: Timestamp::from_ms(6),
            is_healed: true,
            ..ObjectDrift::default()
        },
    ];
    health.problems = vec![ObjectProblem {
        object: "VRF Vrf9".into(),
        reason: "no room".into(),
        attempts: 3,
    }];
    world.ok(report);
    let row = |object: &str, field, wanted: &str, seen: &str, state| {
        (
            object.to_owned(),
            field,
            wanted.to_owned(),
            seen.to_owned(),
            state,
        )
    };
    let expected = [
        row(
            "port swp1",
            "place",
            &format!("VRF {vrf}"),
            "device of another program",
            DifferenceState::Held,
        ),
        row("port swp1", "admin", "up", "down", DifferenceState::Held),
        row("VRF Vrf9", "", "", "", DifferenceState::Failing),
        row(
            "route map MM-swp1-in",
            "",
            "1 permit rules with 2 matches",
            "missing",
            DifferenceState::Healed,
        ),
    ];
    assert_eq!(found(&world, "leaf1"), expected);
    let since = differences(&world.tables, &switch(&world, "leaf1"))[0].since;
    assert_eq!(since, Some(Timestamp::from_ms(5)));

    // Numbers alone are no news, the state of a session is.
    let mut again = as_desired(&world, "leaf2", "swp1");
    again.applied_generation = switch(&world, "leaf2").sync.applied_generation;
    let health = again.health.as_mut().unwrap();
    health.sessions[0].received = 9;
    health.sessions[0].since = Timestamp::from_ms(77);
    assert!(!life::switch_report_matters(&world.tables, &again));
    again.health.as_mut().unwrap().sessions[0].state = "Active".into();
    assert!(life::switch_report_matters(&world.tables, &again));
}
