//! The agent between a control of the test's own, over the real mesh, and BMCs that are not ours.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends where its ground is missing"
)]

mod control;
#[path = "../../../redfish/tests/sushy/emulator.rs"]
mod emulator;
#[path = "../../../../agents/update/tests/replacing/mod.rs"]
mod replacing;
mod simulator;
mod update;

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agents_kit::StateDir;
use bmc_agent::{BmcAgent, Config};
use control::{Control, now_ms};
use emulator::Emulator;
use proto_mesh::{BmcAction, BmcOrderDone, PowerMetric, PowerSupply};
use simulator::{PASSWORD, Simulator};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const M1: &str = "6f1c0001-0000-4000-8000-525400770101";
const M2: &str = "6f1c0001-0000-4000-8000-525400770102";

fn config(dir: &Path, bmcs: &str) -> Config {
    config_with(dir, bmcs, PASSWORD)
}

fn config_with(dir: &Path, bmcs: &str, password: &str) -> Config {
    let login = format!(
        "[default]
user = \"admin\"
password = \"{password}\"
"
    );
    fs::write(dir.join("login.toml"), login).unwrap();
    fs::set_permissions(dir.join("login.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!("credentials = \"login.toml\"\ninterval_s = 5\n{bmcs}");
    fs::write(dir.join("bmc.toml"), text).unwrap();
    Config::read(&dir.join("bmc.toml")).unwrap()
}

/// A running agent.
struct Running {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    fn start(control: &Control, dir: &Path, config: Config) -> Self {
        let state = StateDir::open(&dir.join("state")).unwrap();
        let bmc = BmcAgent::new(control.agent.clone(), config, state).unwrap();
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(bmc.run(stop.clone()));
        Self { stop, tasks }
    }

    async fn stop(mut self) {
        self.stop.cancel();
        self.tasks.join_next().await.unwrap().unwrap();
    }
}

/// A BMC without an asset tag.
async fn refuses_nonces(control: &Control, machine: &str) {
    let done = control.order(machine, BmcAction::SetNonce).await;
    let reason = "without an asset tag that can be written its machine cannot join";
    assert!(done.error.contains(reason), "{}", done.error);
    assert!(done.nonce_sha256.is_empty(), "{done:?}");
}

#[tokio::test]
async fn orders_switch_a_machine_and_their_ends_come_back() {
    let Some(simulator) = Simulator::start(M1) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let port = simulator.port;
    let bmcs =
        format!("[[bmc]]\naddress = \"127.0.0.1\"\ninterface = \"ipmi\"\nipmi_port = {port}\n");
    let control = Control::start();
    let agent = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    let address = format!("127.0.0.1:{port}");
    let status = control
        .status(&address, |status| status.error.is_empty())
        .await;
    assert_eq!(status.machine_uuid, M1);
    assert_eq!(
        (status.interface.as_str(), status.power_state.as_str()),
        ("ipmi", "off")
    );
    assert_eq!(status.bmc_version, "9.8");
    assert!(status.age_ms < 60_000);

    control.refuse(2);
    for (action, power) in [
        (BmcAction::BootPxe, "off"),
        (BmcAction::PowerOn, "on"),
        (BmcAction::PowerOn, "on"),
        (BmcAction::PowerReset, "on"),
        (BmcAction::PowerCycle, "on"),
        (BmcAction::BootDisk, "on"),
        (BmcAction::PowerOff, "off"),
    ] {
        let done = control.order(M1, action).await;
        assert_eq!(
            (done.error.as_str(), done.power_state.as_str()),
            ("", power),
            "{action:?}"
        );
    }
    control
        .status(&address, |status| status.power_state == "off")
        .await;
    let log = simulator.log();
    assert!(log.contains("set boot pxe"), "{log}");
    assert_eq!(log.matches("set reset").count(), 1, "{log}");

    let off = control.order(M1, BmcAction::PowerReset).await;
    assert!(off.error.contains("the machine is off"), "{}", off.error);
    let strange = control.order(M1, BmcAction::Unspecified).await;
    assert!(
        strange.error.contains("knows no action 0"),
        "{}",
        strange.error
    );
    let foreign = control.order(M2, BmcAction::PowerOn).await;
    assert!(
        foreign.error.contains("none of the 1 BMCs here"),
        "{}",
        foreign.error
    );
    agent.stop().await;

    // A new agent with the old journal: control wants everything again and gets the ends alone.
    let again = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    let reset = format!("00000000-0000-7000-8000-{:012x}", 3);
    let told = control.done_count(&reset);
    control.send();
    control::eventually("the end told again", || control.done_count(&reset) > told).await;
    assert_eq!(simulator.log(), log, "nothing was done twice");
    again.stop().await;
    control.stop().await;
}

#[tokio::test]
async fn an_order_of_an_earlier_binding_changes_nothing_however_late_it_arrives() {
    let Some(simulator) = Simulator::start(M1) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let port = simulator.port;
    let bmcs =
        format!("[[bmc]]\naddress = \"127.0.0.1\"\ninterface = \"ipmi\"\nipmi_port = {port}\n");
    let control = Control::start();
    let agent = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    let first = control.order_in(M1, BmcAction::BootPxe, 7, 1).await;
    assert_eq!(first.error, "");
    let second = control.order_in(M1, BmcAction::PowerOn, 7, 2).await;
    assert_eq!(
        (second.error.as_str(), second.power_state.as_str()),
        ("", "on")
    );
    let log = simulator.log();
    let refused = |done: &BmcOrderDone| {
        let reason =
            "not carried out: the order is of binding 1, and this agent has orders of binding";
        assert!(done.error.starts_with(reason), "{done:?}");
        assert!(done.error.contains(M1), "{done:?}");
    };
    // As after a partition: control's newest list has an order of before.
    refused(&control.order_in(M1, BmcAction::PowerOff, 7, 1).await);
    agent.stop().await;

    let again = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    refused(&control.order_in(M1, BmcAction::PowerCycle, 7, 1).await);
    assert_eq!(simulator.log(), log, "nothing reached the BMC");
    // A control that tells no bindings, and one that was restored and counts anew, are obeyed.
    for (era, epoch) in [(0, 0), (8, 1)] {
        let done = control.order_in(M1, BmcAction::PowerReset, era, epoch);
        let done = done.await;
        assert_eq!((done.error.as_str(), done.power_state.as_str()), ("", "on"));
    }
    again.stop().await;
    control.stop().await;
}

#[tokio::test]
async fn silent_and_unwilling_bmcs_are_told_with_address_and_reason() {
    let Some(simulator) = Simulator::start(M1) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let silent = UdpSocket::bind("127.0.0.2:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let bmcs = format!(
        "[[bmc]]\naddress = \"127.0.0.2\"\nipmi_port = {silent_port}\nmachine_uuid = \"{M2}\"\n\
         [[bmc]]\naddress = \"127.0.0.1\"\nipmi_port = {}\n",
        simulator.port
    );
    let control = Control::start();
    let agent = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    let address = format!("127.0.0.2:{silent_port}");
    let status = control.status(&address, |_| true).await;
    assert_eq!(
        (status.machine_uuid.as_str(), status.power_state.as_str()),
        (M2, "unknown")
    );
    let reason = format!("IPMI at {address}: no answer to");
    assert!(status.error.starts_with(&reason), "{}", status.error);
    let began = now_ms();
    let done = control.order(M2, BmcAction::PowerOff).await;
    assert!(done.error.starts_with(&reason), "{}", done.error);
    assert!(now_ms() - began < 20_000, "before control gives up");
    refuses_nonces(&control, M1).await;
    agent.stop().await;
    control.stop().await;
}

fn supply(health: &str, state: &str) -> PowerSupply {
    PowerSupply {
        health: health.into(),
        state: state.into(),
    }
}

#[tokio::test]
async fn control_is_told_of_power_supplies_behind_ipmi() {
    let Some(simulator) = Simulator::start(M1) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let port = simulator.port;
    let bmcs = format!("[[bmc]]\naddress = \"127.0.0.1\"\nipmi_port = {port}\n");
    let control = Control::start();
    let agent = Running::start(&control, dir.path(), config(dir.path(), &bmcs));
    let address = format!("127.0.0.1:{port}");
    let status = control
        .status(&address, |status| status.draw.is_some())
        .await;
    assert_eq!(status.user, "admin");
    let draw = status.draw.unwrap();
    assert_eq!(draw.metric, None, "ipmi_sim has no DCMI");
    let expected = [supply("OK", "Enabled"), supply("Critical", "Enabled")];
    assert_eq!(draw.supplies, expected);
    agent.stop().await;
    control.stop().await;
}

#[tokio::test]
async fn control_is_told_what_a_machine_behind_redfish_draws() {
    let Some(emulator) = Emulator::start_with(M2, emulator::power()) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let bmcs = format!(
        "[[bmc]]\naddress = \"127.0.0.1\"\nredfish_port = {}\ntls_sha256 = \"{}\"\n",
        emulator.address.port(),
        hex::encode(emulator.pin)
    );
    let control = Control::start();
    let config = config_with(dir.path(), &bmcs, emulator::PASSWORD);
    let agent = Running::start(&control, dir.path(), config);
    let address = emulator.address.to_string();
    let status = control
        .status(&address, |status| status.draw.is_some())
        .await;
    let draw = status.draw.unwrap();
    let metric = PowerMetric {
        average_mw: 230_500,
        min_mw: 198_000,
        max_mw: 305_250,
        interval_ms: 1_200_000,
    };
    assert_eq!(draw.metric, Some(metric));
    let expected = [
        supply("OK", "Enabled"),
        supply("Critical", "UnavailableOffline"),
        supply("", "Absent"),
    ];
    assert_eq!(draw.supplies, expected);
    agent.stop().await;
    control.stop().await;
}

/// A link to a resource that is not there: the rest of the reading counts.
#[tokio::test]
async fn power_that_cannot_be_read_leaves_the_rest_of_a_reading() {
    let [links, _] = emulator::power();
    let Some(emulator) = Emulator::start_with(M2, [links, serde_json::json!({})]) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let bmcs = format!(
        "[[bmc]]\naddress = \"127.0.0.1\"\nredfish_port = {}\ntls_sha256 = \"{}\"\n",
        emulator.address.port(),
        hex::encode(emulator.pin)
    );
    let control = Control::start();
    let config = config_with(dir.path(), &bmcs, emulator::PASSWORD);
    let agent = Running::start(&control, dir.path(), config);
    let address = emulator.address.to_string();
    let status = control.status(&address, |_| true).await;
    assert_eq!((status.error.as_str(), status.draw), ("", None));
    assert_eq!(status.power_state, "off");
    agent.stop().await;
    control.stop().await;
}

#[tokio::test]
async fn a_machine_behind_redfish_is_switched_over_checked_tls() {
    let Some(emulator) = Emulator::start(M2) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let pin: String = emulator
        .pin
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let bmcs = format!(
        "[[bmc]]\naddress = \"127.0.0.1\"\nredfish_port = {}\ntls_sha256 = \"{pin}\"\n",
        emulator.address.port()
    );
    let control = Control::start();
    let config = config_with(dir.path(), &bmcs, emulator::PASSWORD);
    let agent = Running::start(&control, dir.path(), config);
    let address = emulator.address.to_string();
    let status = control
        .status(&address, |status| status.error.is_empty())
        .await;
    assert_eq!(
        (status.machine_uuid.as_str(), status.interface.as_str()),
        (M2, "redfish")
    );
    assert_eq!(status.power_state, "off");
    for (action, power) in [
        (BmcAction::BootPxe, "off"),
        (BmcAction::PowerOn, "on"),
        (BmcAction::PowerCycle, "on"),
        (BmcAction::LedOn, "on"),
        (BmcAction::BootDisk, "on"),
        (BmcAction::PowerOff, "off"),
    ] {
        let done = control.order(M2, action).await;
        assert_eq!(
            (done.error.as_str(), done.power_state.as_str()),
            ("", power),
            "{action:?}"
        );
    }
    control
        .status(&address, |status| status.led_state == "on")
        .await;
    refuses_nonces(&control, M2).await;
    let bios = control.order(M2, BmcAction::BootBios).await;
    assert!(
        bios.error
            .contains("does not support boot target BiosSetup"),
        "{}",
        bios.error
    );
    agent.stop().await;
    control.stop().await;
}
