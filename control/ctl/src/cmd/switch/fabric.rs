//! Switches with desired beside observed state.

use anyhow::{Context as _, Result};
use prost_types::Timestamp;
use proto_public::api::v2::{Switch, SwitchReplaceMode};
use proto_public::metalmesh::admin::v1::{
    FabricPort, FabricServiceDrainRequest, FabricServiceGetRequest,
    FabricServiceListDifferencesRequest, FabricSwitch,
};

use crate::app::App;
use crate::cmd::given;
use crate::output::{TableRow, message_json, print_table, to_json};
use crate::show::{place, port_actual};
use crate::text::{age, enum_text, or_dash};

/// Full name of the message in the contract.
const SWITCH: &str = "metalmesh.admin.v1.FabricSwitch";

async fn get(app: &App, id: String) -> Result<FabricSwitch> {
    let request = FabricServiceGetRequest { id };
    let answer = app.client.fabric().get(request).await?;
    given(answer.into_inner().switch)
}

/// Prints a switch of the public contract with its fabric.
pub(super) async fn show(app: &App, switch: Switch) -> Result<()> {
    let fabric = get(app, switch.id.clone()).await?;
    if app.output.is_table() {
        details(&switch, &fabric);
        return Ok(());
    }
    let mut shown = to_json(&switch)?;
    let object = shown.as_object_mut().context("a switch is an object")?;
    object.insert("fabric".to_owned(), message_json(SWITCH, &fabric)?);
    app.output.value(&shown)
}

fn details(switch: &Switch, fabric: &FabricSwitch) {
    print_table(&Switch::titles(true), [switch.cells(true)]);
    service(fabric);
    if switch.replace_mode() == SwitchReplaceMode::Replace {
        outln!(
            "to be replaced: the next switch that registers as {} is its heir",
            switch.id
        );
    }
    if let Some(error) = switch
        .last_sync_error
        .as_ref()
        .and_then(|sync| sync.error.as_ref())
    {
        let when = age(switch
            .last_sync_error
            .as_ref()
            .and_then(|sync| sync.time.as_ref()));
        outln!("\nlast error {when} ago: {error}");
    }
    outln!();
    let rows = switch.nics.iter().map(|nic| {
        let desired = nic
            .state
            .as_ref()
            .and_then(|state| state.desired)
            .unwrap_or_default();
        let mut ports = fabric.ports.iter();
        let port = ports.find(|port| port.name == nic.name);
        let [wanted, seen] = places(port);
        vec![
            nic.name.clone(),
            enum_text("metalstack.api.v2.SwitchPortStatus", desired),
            port_actual(nic),
            wanted,
            seen,
            or_dash(port.map(|port| port.machine.clone()).unwrap_or_default()),
        ]
    });
    let titles = [
        "port",
        "desired",
        "actual",
        "belongs in",
        "is in",
        "machine",
    ];
    print_table(&titles, rows);
    if !fabric.differences.is_empty() {
        outln!();
        differences(fabric);
    }
}

/// The desired and the observed place of a port.
fn places(port: Option<&FabricPort>) -> [String; 2] {
    let states = port.map(|port| [port.desired.as_ref(), port.observed.as_ref()]);
    states
        .unwrap_or_default()
        .map(|state| state.map_or_else(|| "-".to_owned(), place))
}

/// One line on the switch's service and its sessions.
fn service(fabric: &FabricSwitch) {
    let service = service_state(fabric.drained_at.as_ref(), fabric.draining);
    let sessions = fabric.sessions.iter();
    let up = sessions.filter(|session| session.state == "Established");
    let bgp = match fabric.sessions.len() {
        0 => "BGP not reported".to_owned(),
        all => format!("BGP sessions up {}/{all}", up.count()),
    };
    let agent = match fabric.connected {
        Some(true) => "agent connected",
        Some(false) => "agent NOT connected",
        None => "agent's session not known",
    };
    let report = match &fabric.reported_at {
        Some(at) => format!("last change reported {} ago", age(Some(at))),
        None => "nothing reported yet".to_owned(),
    };
    outln!("\n{service}; {bgp}; {agent}; {report}");
}

/// The service of a switch that is wanted to be drained since then, or not, in words.
pub(super) fn service_state(drained_at: Option<&Timestamp>, is_draining: bool) -> String {
    match (drained_at, is_draining) {
        (Some(at), true) => format!("drained {} ago", age(Some(at))),
        (Some(at), false) => format!("draining since {}", age(Some(at))),
        (None, true) => "comes back into service".to_owned(),
        (None, false) => "in service".to_owned(),
    }
}

fn differences(fabric: &FabricSwitch) {
    use proto_public::metalmesh::admin::v1::FabricDifference;
    let rows = fabric.differences.iter().map(|found| found.cells(false));
    print_table(&FabricDifference::titles(false), rows);
    if fabric.differences_omitted > 0 {
        outln!(
            "and {} more objects with problems",
            fabric.differences_omitted
        );
    }
}

/// Lists the ports of a switch.
pub(super) async fn ports(app: &App, id: String) -> Result<()> {
    let switch = get(app, id).await?;
    app.output.list(&switch.ports)?;
    if app.output.is_table() {
        match &switch.counted_at {
            Some(at) => noteln!("counters of {} ago", age(Some(at))),
            None => noteln!("the agent reports no counters"),
        }
    }
    Ok(())
}

/// Lists the BGP sessions of a switch.
pub(super) async fn bgp(app: &App, id: String) -> Result<()> {
    let switch = get(app, id).await?;
    if !app.output.is_table() {
        return app.output.list(&switch.sessions);
    }
    if switch.sessions.is_empty() {
        noteln!("The agent reports no BGP sessions.");
        return Ok(());
    }
    app.output.list(&switch.sessions)?;
    if switch.sessions_omitted > 0 {
        outln!("and {} more sessions", switch.sessions_omitted);
    }
    if let Some(evpn) = &switch.evpn {
        outln!(
            "\nEVPN: {} routes, {} VNIs of segments, {} VNIs of VRFs",
            evpn.routes,
            evpn.l2_vnis,
            evpn.l3_vnis
        );
    }
    Ok(())
}

/// Lists what is not as desired.
pub(super) async fn diff(app: &App, id: Option<String>, partition: Option<String>) -> Result<()> {
    let request = FabricServiceListDifferencesRequest {
        id: id.unwrap_or_default(),
        partition: partition.unwrap_or_default(),
    };
    let answer = app.client.fabric().list_differences(request).await?;
    let found = answer.into_inner().differences;
    if found.is_empty() && app.output.is_table() {
        noteln!("Nothing differs from the desired state.");
        return Ok(());
    }
    app.output.list(&found)
}

/// Drains a switch, or puts it into service again.
pub(super) async fn drain(app: &App, id: String, drained: bool, force: bool) -> Result<()> {
    let request = FabricServiceDrainRequest { id, drained, force };
    let answer = app.client.fabric().drain(request).await?;
    let switch = given(answer.into_inner().switch)?;
    app.output.message(SWITCH, &switch, |switch| {
        outln!("switch {}", switch.id);
        service(switch);
        if !switch.differences.is_empty() {
            outln!();
            differences(switch);
        }
    })
}
