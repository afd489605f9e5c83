//! Forecasts of the changes that a command would cause.

use control_state::*;
use proto_types::SwitchId;

use super::{dual_homed, running, switch, world};
use crate::world::*;

#[test]
fn a_forecast_writes_nothing_and_comes_true() {
    let mut world = world("evpn");
    dual_homed(&mut world, 1);
    let before = world.tables.state_hash().unwrap();
    let change = FabricChange::Allocate {
        machine: id(1),
        network: text("private"),
        image: Some(IMAGE.into()),
    };
    let planned = forecast(world.tables.clone(), &change, world.now).unwrap();
    assert_eq!(world.tables.state_hash().unwrap(), before);
    let vrf = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    for leaf in ["leaf1", "leaf2"] {
        let leaf: SwitchId = text(leaf);
        let of = |object: &str, field: &str| {
            let mut rows = planned.iter().filter(|one| one.switch == leaf);
            let row = rows.find(|one| one.object == object && one.field == field);
            let row = row.unwrap_or_else(|| panic!("{planned:?}"));
            (row.before.clone(), row.after.clone())
        };
        let place = of("port swp1", "place");
        assert_eq!(
            place,
            (
                format!("segment {PROVISIONING_VNI_DEFAULT}"),
                format!("VRF {vrf}")
            )
        );
        assert_eq!(of("port swp1", "announces").1, "10.128.0.0/22");
        assert_eq!(of(&format!("VRF {vrf}"), "device").1, format!("Vrf{vrf}"));
    }
    assert!(
        planned.iter().all(|one| one.object != "port swp2"),
        "{planned:?}"
    );

    running(&mut world, 2);
    let told = life::port_intents(&world.tables, &switch(&world, "leaf2"));
    assert_eq!(told[1].vni.get(), vrf, "as forecast for the other machine");
    let release = FabricChange::Release(id(2));
    let planned = forecast(world.tables.clone(), &release, world.now).unwrap();
    assert!(
        planned
            .iter()
            .any(|one| one.object == format!("VRF {vrf}") && one.after.is_empty())
    );
    let refused = forecast(
        world.tables.clone(),
        &FabricChange::Release(id(1)),
        world.now,
    );
    assert_eq!(refused.unwrap_err().code, ErrorCode::MachineNotAllocated);

    let down = FabricChange::Port(SetSwitchPort {
        id: text("leaf1"),
        port: "swp2".into(),
        admin_up: false,
    });
    let planned = forecast(world.tables.clone(), &down, world.now).unwrap();
    let [one] = &planned[..] else {
        panic!("{planned:?}");
    };
    assert_eq!(
        (one.field, one.before.as_str(), one.after.as_str()),
        ("admin", "up", "down")
    );
}

#[test]
fn an_allocation_is_planned_for_its_image() {
    let mut world = world("evpn");
    dual_homed(&mut world, 1);
    let vrf = world.tables.get::<Network>(&text("private")).unwrap();
    let vrf = vrf.vrf.unwrap();
    for (image, wanted) in [
        (Some(IMAGE), format!("VRF {vrf}")),
        (None, format!("segment of VRF {vrf}")),
    ] {
        let change = FabricChange::Allocate {
            machine: id(1),
            network: text("private"),
            image: image.map(ToOwned::to_owned),
        };
        let planned = forecast(world.tables.clone(), &change, world.now).unwrap();
        let mut places = planned.iter().filter(|one| one.field == "place");
        assert!(places.all(|one| one.after == wanted), "{planned:?}");
    }
    let unknown = FabricChange::Allocate {
        machine: id(1),
        network: text("private"),
        image: Some("plan9-4.0".into()),
    };
    let refused = forecast(world.tables.clone(), &unknown, world.now);
    assert_eq!(refused.unwrap_err().code, ErrorCode::NotFound);
}
