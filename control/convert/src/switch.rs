//! Switches.

use control_state::{self as state, Machine, Tables, query};
use proto_public::api::v2;
use proto_types::{SwitchId, Vni};

use super::enums::replace_mode;
use super::{duration, is, is_choice, meta, time};

/// Name of the default routing table, which belongs to no tenant.
const VRF_DEFAULT: &str = "default";

/// A switch for the wire.
pub fn switch(tables: &Tables, switch: &state::Switch) -> v2::Switch {
    let nics = switch
        .ports
        .iter()
        .map(|(name, port)| nic(tables, switch, name, port));
    let machines = query::switch_machines(tables, &switch.id).filter_map(|(name, machine)| {
        let port = switch.ports.get(name)?;
        Some(v2::MachineConnection {
            machine_id: machine.id.to_string(),
            nic: Some(nic(tables, switch, name, port)),
        })
    });
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    v2::Switch {
        id: switch.id.to_string(),
        meta: meta(&switch.meta),
        description: switch.description.clone(),
        rack: some(&switch.rack),
        room: some(&switch.room),
        partition: switch.partition.to_string(),
        replace_mode: replace_mode(switch.replace_mode),
        management_ip: switch
            .management_ip
            .map(|ip| ip.to_string())
            .unwrap_or_default(),
        management_user: switch.management_user.clone(),
        console_command: switch.console_command.clone(),
        nics: nics.collect(),
        os: Some(os(switch)),
        machine_connections: machines.collect(),
        last_sync: Some(v2::SwitchSync {
            time: time(switch.sync.at),
            duration: Some(duration(switch.sync.duration_ms)),
            error: None,
        }),
        last_sync_error: switch
            .sync
            .error
            .as_ref()
            .map(|(at, error)| v2::SwitchSync {
                time: time(*at),
                duration: None,
                error: Some(error.clone()),
            }),
    }
}

/// The vendor of the operating system of a switch. The contract has two vendors; ours are neither.
pub fn vendor(name: &str) -> v2::SwitchOsVendor {
    match name.to_ascii_lowercase().as_str() {
        "sonic" => v2::SwitchOsVendor::Sonic,
        // Plain Linux with its own bridge is what Cumulus was.
        _ => v2::SwitchOsVendor::Cumulus,
    }
}

/// The reported version, with the name of the vendor before it if the contract has no value for it.
fn os_version(switch: &state::Switch) -> String {
    let (name, version) = (switch.os_vendor.as_str(), switch.os_version.as_str());
    match name.to_ascii_lowercase().as_str() {
        "" | "sonic" | "cumulus" => version.to_owned(),
        _ => format!("{name} {version}").trim_end().to_owned(),
    }
}

fn os(switch: &state::Switch) -> v2::SwitchOs {
    v2::SwitchOs {
        vendor: vendor(&switch.os_vendor).into(),
        version: os_version(switch),
        metal_core_version: switch.agent_version.clone(),
    }
}

fn nic(
    tables: &Tables,
    switch: &state::Switch,
    name: &str,
    port: &state::SwitchPort,
) -> v2::SwitchNic {
    let status = |up: bool| {
        if up {
            v2::SwitchPortStatus::Up
        } else {
            v2::SwitchPortStatus::Down
        }
    };
    let actual = port
        .observed
        .as_ref()
        .map_or(v2::SwitchPortStatus::Unknown, |observed| {
            status(observed.oper_up)
        });
    let vni = state::life::port_vni(tables, switch, name);
    let machine = query::port_machine(tables, &switch.id, name);
    let machine = machine.map(AsRef::as_ref);
    #[expect(
        deprecated,
        reason = "published clients read the address from this field"
    )]
    v2::SwitchNic {
        name: name.to_owned(),
        identifier: port.identifier.clone().unwrap_or_else(|| name.to_owned()),
        mac: port.mac.map(|mac| mac.to_string()),
        vrf: vrf(
            machine.filter(|machine| is_claimed(machine, &switch.id, name)),
            vni,
        ),
        state: Some(v2::NicState {
            desired: Some(status(port.admin_up).into()),
            actual: actual.into(),
        }),
        bgp_filter: machine
            .and_then(|machine| state::life::bgp_filter(tables, machine))
            .map(bgp_filter),
        bgp_port_state: port
            .observed
            .as_ref()
            .and_then(|observed| observed.bgp.as_ref())
            .map(bgp_state),
    }
}

/// `true` if the machine knows of the cable: a firewall that does not has nothing to do there.
fn is_claimed(machine: &Machine, switch: &SwitchId, port: &str) -> bool {
    let mut links = machine.links.iter().filter(|link| !link.unclaimed);
    links.any(|link| link.switch == *switch && link.port == port)
}

/// A firewall's port carries the tunnels of all its networks, and so is in none of them.
fn vrf(machine: Option<&Machine>, vni: Vni) -> Option<String> {
    let allocation = machine.and_then(|machine| machine.allocation.as_ref());
    let is_firewall =
        allocation.is_some_and(|allocation| allocation.kind == state::AllocationType::Firewall);
    let is_tenants = machine.is_some_and(|machine| machine.segment == state::Segment::Tenant);
    if is_firewall && is_tenants {
        return Some(VRF_DEFAULT.to_owned());
    }
    (vni.get() != 0).then(|| format!("vrf{vni}"))
}

fn bgp_filter(filter: state::life::BgpFilter) -> v2::BgpFilter {
    v2::BgpFilter {
        cidrs: filter.cidrs.iter().map(ToString::to_string).collect(),
        vnis: filter.vnis.iter().map(ToString::to_string).collect(),
    }
}

fn bgp_state(session: &state::BgpSession) -> v2::SwitchBgpPortState {
    v2::SwitchBgpPortState {
        neighbor: session.neighbour.clone(),
        peer_group: session.peer_group.clone(),
        vrf_name: session.vrf.clone(),
        bgp_state: session.state,
        bgp_timer_up_established: time(session.established_at),
        sent_prefix_counter: session.sent_prefixes,
        accepted_prefix_counter: session.accepted_prefixes,
    }
}

/// `true` if the query matches this switch.
pub fn matches(tables: &Tables, switch: &state::Switch, query: Option<&v2::SwitchQuery>) -> bool {
    let Some(query) = query else { return true };
    let connected = |machine: &String| {
        let id = machine.parse().ok();
        let found = id.and_then(|id| tables.get::<state::Machine>(&id));
        found.is_some_and(|found| found.links.iter().any(|link| link.switch == switch.id))
    };
    let os_fits = |os: &v2::SwitchOsQuery| {
        is_choice(os.vendor, vendor(&switch.os_vendor) as i32)
            && is(os.version.as_ref(), &os_version(switch))
    };
    is(query.id.as_ref(), switch.id.as_str())
        && is(query.partition.as_ref(), switch.partition.as_str())
        && is(query.rack.as_ref(), &switch.rack)
        && is(query.room.as_ref(), &switch.room)
        && query.os.as_ref().is_none_or(os_fits)
        && query.connected_machine_id.as_ref().is_none_or(connected)
}

#[cfg(test)]
#[path = "switch_tests.rs"]
mod tests;
