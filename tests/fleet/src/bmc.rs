//! The BMCs that speak Redfish, over HTTP, each at an address of its own on loopback; and what
//! BMCs of every kind do.
//!
//! One listener serves them all; the address that was connected to says which one it is.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use proto_types::MacAddr;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::delays::pass;
use crate::drawn;
use crate::machine::{BootDevice, Machine};
use crate::plan::partition_name;
use crate::world::World;

/// The password of every BMC; whose agent asks is told by the user.
pub(crate) const PASSWORD: &str = "rehearsal";
/// How often a BMC that hangs comes to itself.
const HUNG_LOOK: Duration = Duration::from_millis(50);
const BODY_LEN_MAX: usize = 64 << 10;
const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

/// Answers for all BMCs until the world stops.
pub(crate) async fn serve(world: Arc<World>, listener: TcpListener) -> Result<()> {
    let by_address: std::collections::BTreeMap<Ipv4Addr, usize> = world
        .machines
        .iter()
        .filter(|m| !m.plan.has_ipmi)
        .map(|m| (m.plan.bmc, m.plan.number))
        .collect();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = world.stop.cancelled() => return Ok(()),
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // For want of descriptors: the agent tries again.
                let Ok((stream, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let number = match stream.local_addr() {
                    Ok(SocketAddr::V4(at)) => by_address.get(at.ip()).copied(),
                    _ => None,
                };
                if let Some(number) = number {
                    connections.spawn(connection(Arc::clone(&world), number, stream));
                }
            }
        }
    }
}

async fn connection(world: Arc<World>, number: usize, stream: TcpStream) {
    if world.machines.get(number).is_some_and(Machine::is_dark) {
        return;
    }
    let service = service_fn(move |request| {
        let world = Arc::clone(&world);
        async move { Ok::<_, Infallible>(respond(&world, number, request).await) }
    });
    let http = hyper::server::conn::http1::Builder::new();
    // An agent that goes in the middle is no matter of the BMC.
    http.serve_connection(TokioIo::new(stream), service)
        .await
        .ok();
}

async fn respond(
    world: &World,
    number: usize,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let Some(machine) = world.machines.get(number) else {
        return answer(StatusCode::NOT_FOUND, &Value::Null);
    };
    while machine.is_hung() {
        sleep(HUNG_LOOK).await;
    }
    if machine.is_dark() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, &Value::Null);
    }
    let user = user(request.headers());
    let is_own = user == partition_name(machine.plan.partition);
    world.truth.bmc_asked(number, &user, is_own);
    if !is_own {
        return answer(StatusCode::UNAUTHORIZED, &Value::Null);
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let body = Limited::new(request.into_body(), BODY_LEN_MAX)
        .collect()
        .await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match (method, path.as_str()) {
        (Method::GET, path) => match read(machine, path.trim_end_matches('/')) {
            Some(value) => answer(StatusCode::OK, &value),
            None => answer(StatusCode::NOT_FOUND, &Value::Null),
        },
        (Method::POST, RESET) => {
            reset(
                world,
                machine,
                body["ResetType"].as_str().unwrap_or_default(),
            )
            .await
        }
        (Method::PATCH, SYSTEM) => {
            change(world, machine, &body);
            answer(StatusCode::OK, &json!({}))
        }
        _ => answer(StatusCode::METHOD_NOT_ALLOWED, &Value::Null),
    }
}

fn answer(status: StatusCode, value: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(value.to_string()));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Who asks; empty with a wrong password.
fn user(headers: &HeaderMap) -> String {
    let text = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let basic = text.and_then(|text| STANDARD.decode(text.strip_prefix("Basic ")?).ok());
    let pair = String::from_utf8(basic.unwrap_or_default()).unwrap_or_default();
    match pair.split_once(':') {
        Some((user, PASSWORD)) => user.to_owned(),
        _ => String::new(),
    }
}

fn read(machine: &Machine, path: &str) -> Option<Value> {
    let link = |path: &str| json!({ "@odata.id": path });
    let one = |path: &str| json!({ "Members": [link(path)], "Members@odata.count": 1 });
    Some(match path {
        "/redfish/v1" => json!({
            "RedfishVersion": "1.15.0",
            "Systems": link("/redfish/v1/Systems"),
            "Managers": link("/redfish/v1/Managers"),
            "Chassis": link("/redfish/v1/Chassis"),
        }),
        "/redfish/v1/Systems" => one(SYSTEM),
        SYSTEM => system(machine),
        "/redfish/v1/Managers/1" => json!({
            "FirmwareVersion": "1.0", "Model": "simulated",
            "EthernetInterfaces": link("/redfish/v1/Managers/1/EthernetInterfaces"),
        }),
        "/redfish/v1/Managers/1/EthernetInterfaces" => {
            one("/redfish/v1/Managers/1/EthernetInterfaces/1")
        }
        "/redfish/v1/Managers/1/EthernetInterfaces/1" => {
            json!({ "MACAddress": mac(machine).to_string() })
        }
        "/redfish/v1/Chassis/1" => json!({
            "Manufacturer": "Fleet", "Model": "1U",
            "SerialNumber": format!("C{}", machine.plan.number),
            "Power": link("/redfish/v1/Chassis/1/Power"),
        }),
        "/redfish/v1/Chassis/1/Power" => drawn::resource(machine),
        _ => return None,
    })
}

fn system(machine: &Machine) -> Value {
    let target = match machine.boot_device() {
        BootDevice::Pxe => "Pxe",
        BootDevice::Disk => "Hdd",
    };
    json!({
        "UUID": machine.plan.uuid.to_string(),
        "SystemType": "Physical",
        "Manufacturer": "Fleet", "Model": "simulated",
        "SerialNumber": format!("M{}", machine.plan.number),
        "BiosVersion": "1.0",
        "AssetTag": machine.tag.text(),
        "PowerState": if machine.is_on() { "On" } else { "Off" },
        "LocationIndicatorActive": machine.led(),
        "Boot": {
            "BootSourceOverrideEnabled": "Continuous",
            "BootSourceOverrideTarget": target,
            "BootSourceOverrideMode": "UEFI",
            "BootSourceOverrideTarget@Redfish.AllowableValues": ["Pxe", "Hdd", "BiosSetup"],
        },
        "Actions": { "#ComputerSystem.Reset": {
            "target": RESET,
            "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart", "PowerCycle"],
        }},
        "Links": {
            "ManagedBy": [{ "@odata.id": "/redfish/v1/Managers/1" }],
            "Chassis": [{ "@odata.id": "/redfish/v1/Chassis/1" }],
        },
    })
}

async fn reset(world: &World, machine: &Machine, kind: &str) -> Response<Full<Bytes>> {
    let switching = match kind {
        "On" => Switching::On,
        "ForceOff" => Switching::Off,
        "ForceRestart" | "PowerCycle" => Switching::Restart,
        _ => return answer(StatusCode::BAD_REQUEST, &Value::Null),
    };
    pass(world.delays.power_ms).await;
    if machine.is_dark() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, &Value::Null);
    }
    switch(world, machine, switching);
    answer(StatusCode::OK, &json!({}))
}

/// What a BMC does with the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switching {
    On,
    Off,
    /// Off and on again.
    Restart,
}

/// Switches a machine; nothing happens to one that has no power.
pub(crate) fn switch(world: &World, machine: &Machine, switching: Switching) {
    let number = machine.plan.number;
    match switching {
        _ if machine.is_dark() => {}
        Switching::On if !machine.is_on() => {
            world.truth.note(number, "switched on by its BMC");
            machine.switch(true);
        }
        Switching::Off if machine.is_on() => {
            world.truth.powered_off(number);
            machine.switch(false);
        }
        Switching::On | Switching::Off => {}
        Switching::Restart => {
            world.truth.restarted(number);
            machine.switch(true);
        }
    }
}

/// Sets the persistent boot device.
pub(crate) fn set_boot(world: &World, machine: &Machine, boot: BootDevice) {
    let note = format!("its BMC sets the boot device to {boot:?}");
    world.truth.note(machine.plan.number, note);
    machine.set_boot_device(boot);
}

/// The BMC's own Ethernet address.
pub(crate) fn mac(machine: &Machine) -> MacAddr {
    let [cable, _] = &machine.plan.cables;
    let mut mac = cable.mac;
    mac.0[1] = 0xfb;
    mac
}

fn change(world: &World, machine: &Machine, body: &Value) {
    if let Some(on) = body["LocationIndicatorActive"].as_bool() {
        machine.set_led(on);
    }
    if let Some(tag) = body["AssetTag"].as_str() {
        machine.tag.set(tag);
    }
    let boot = match body["Boot"]["BootSourceOverrideTarget"].as_str() {
        Some("Hdd") => BootDevice::Disk,
        Some("Pxe") => BootDevice::Pxe,
        _ => return,
    };
    set_boot(world, machine, boot);
}

/// Where the agent finds a machine's BMC.
pub(crate) fn address(machine: &Machine) -> IpAddr {
    IpAddr::V4(machine.plan.bmc)
}
