//! The agent of a leaf: it moves ports where they belong, and says so.

use std::collections::BTreeMap;
use std::time::Duration;

use control_state::life::{self, PortIntent};
use control_state::{Neighbour, PortObserved, ReportSwitch, Switch, Tables};
use proto_types::SwitchId;
use tests_support::objects::{mac, text};

use crate::node::Shared;
use crate::random::Random;
use crate::tenants::calls::{Call, deliver};
use crate::tenants::site;
use crate::tenants::work::TenantWork;

/// Serves leaf `number` until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>, number: u64) {
    let seed = world.borrow().plan.seed;
    let mut random = Random::new(seed, &format!("leaf {number}"));
    let leaf: SwitchId = text(&site::leaf_name(number));
    loop {
        let pause = random.within(300..1_500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let (view, is_calm) = {
            let world = world.borrow();
            (world.work.view.clone(), world.is_calm)
        };
        if is_calm {
            return;
        }
        let report = view.and_then(|view| report(&view, &leaf, number));
        if let Some(report) = report {
            let call = Call::of(leaf.as_str(), report);
            drop(deliver(&world, &mut random, &call).await);
        }
    }
}

/// The report of the ports that are not yet reported where they belong. `None` means that all are.
fn report(tables: &Tables, leaf: &SwitchId, number: u64) -> Option<ReportSwitch> {
    let switch = tables.get::<Switch>(leaf)?;
    let intents = life::port_intents(tables, switch);
    let moved = intents.iter().filter(|intent| !is_reported(switch, intent));
    let ports: BTreeMap<String, PortObserved> = moved
        .map(|intent| (intent.name.clone(), observed(intent, number)))
        .collect();
    (!ports.is_empty()).then(|| ReportSwitch {
        id: leaf.clone(),
        applied_term: 1,
        applied_generation: tables.revision(),
        duration_ms: 1,
        error: None,
        ports,
        health: None,
    })
}

fn is_reported(switch: &Switch, intent: &PortIntent) -> bool {
    let port = switch.ports.get(&intent.name);
    let seen = port.and_then(|port| port.observed.as_ref());
    seen.is_some_and(|seen| seen.vni == intent.vni && seen.admin_up == intent.admin_up)
}

/// A port where it belongs, which hears the card of its machine.
fn observed(intent: &PortIntent, leaf: u64) -> PortObserved {
    let machine = site::machine_at(leaf, &intent.name);
    let heard = machine.map(|machine| Neighbour {
        mac: Some(mac(u128::from(machine))),
        ..Neighbour::default()
    });
    PortObserved {
        admin_up: intent.admin_up,
        oper_up: true,
        vni: intent.vni,
        neighbours: heard.into_iter().collect(),
        ..PortObserved::default()
    }
}
