//! The command line about a switch whose agent is the real one, on a switch in memory.

use agents_core::config::DriftPolicy;
use agents_nos::frr::failures::SessionFailure;
use agents_nos::frr::sessions::BgpSession;
use agents_nos::model::PortName;
use agents_nos::{EvpnSizes, LinkCounters, PortTelemetry, Telemetry};
use serde_json::Value;

use crate::agent::{Running, invited, invited_as, order_ticket, with_partition};
use crate::cli::{Cli, metalmesh};
use crate::nodes::{Cluster, eventually};

fn session(neighbour: &str, family: &str, state: &str) -> BgpSession {
    BgpSession {
        vrf: "default".into(),
        neighbour: neighbour.into(),
        family: family.into(),
        remote_as: 4_200_000_001,
        state: state.into(),
        age: std::time::Duration::from_secs(90),
        received: 7,
        sent: 5,
        established: 1,
        dropped: 0,
        table: 42,
    }
}

pub(crate) fn telemetry() -> Telemetry {
    let counters = LinkCounters {
        rx_bytes: 4096,
        rx_errors: 3,
        ..LinkCounters::default()
    };
    let port = PortTelemetry {
        counters: Some(counters),
        optics: None,
    };
    Telemetry {
        sessions: vec![
            session("swp31", "l2VpnEvpn", "Established"),
            session("swp2", "ipv4Unicast", "Active"),
        ],
        failures: vec![SessionFailure {
            vrf: "default".into(),
            neighbour: "swp2".into(),
            reason: "No AFI/SAFI activated for peer".into(),
        }],
        evpn: Some(EvpnSizes {
            l2_vnis: 1,
            l3_vnis: 2,
            routes: 42,
        }),
        ports: [(PortName::new("swp1").unwrap(), port)].into(),
    }
}

/// The switch as the command line shows it, once it is as wanted.
async fn shown(cli: &Cli, wanted: impl Fn(&Value) -> bool) -> Value {
    eventually("switch as wanted", || async {
        let output = cli
            .command(&["switch", "show", "leaf1", "-o", "json"])
            .output();
        let output = output.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let switch: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match wanted(&switch) {
            true => Ok(switch),
            false => Err(text),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_what_a_switch_is_and_should_be() {
    let Some(program) = metalmesh() else { return };
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let cluster = with_partition(Cluster::form(&dir.path().join("nodes"))).await;
    let config = cluster.nodes[0].dir.join("context.yaml");
    let cli = Cli { program, config };
    let args = invited(&cluster, 0, dir.path()).await;
    let running = Running::start_on(&args, DriftPolicy::Report, &["swp1", "swp2"]).await;
    running.switch.set_telemetry(telemetry());

    let switch = shown(&cli, |switch| {
        let fabric = &switch["fabric"];
        let ports = fabric["ports"].as_array().map_or(0, Vec::len);
        let sessions = fabric["sessions"].as_array().map_or(0, Vec::len);
        ports == 2 && sessions == 2 && fabric["differences"] == Value::Array(vec![])
    })
    .await;
    assert_eq!(switch["fabric"]["connected"], true, "{switch:#}");
    let table = cli.ok(&["switch", "show", "leaf1"]);
    assert!(
        table.contains("in service; BGP sessions up 1/2; agent connected; last change reported"),
        "{table}"
    );
    let ports = cli.ok(&["switch", "ports", "leaf1"]);
    assert!(ports.contains("4 KiB") && ports.contains("3/0"), "{ports}");
    assert!(ports.contains("not reported"), "no optics: {ports}");
    let bgp = cli.ok(&["switch", "bgp", "leaf1"]);
    assert!(
        bgp.contains("EVPN: 42 routes, 1 VNIs of segments, 2 VNIs of VRFs"),
        "{bgp}"
    );
    assert!(bgp.contains("No AFI/SAFI activated for peer"), "{bgp}");
    let sessions: Value =
        serde_json::from_str(&cli.ok(&["switch", "bgp", "leaf1", "-o", "json"])).unwrap();
    assert_eq!(
        sessions[0]["state"], "Active",
        "those that are down come first"
    );

    let plan = ["switch", "plan", "--port", "leaf1", "swp2", "down"];
    let planned = cli.ok(&plan);
    assert!(
        planned.contains("port swp2") && planned.contains("admin"),
        "{planned}"
    );
    let drain = cli.ok(&["switch", "plan", "--drain", "leaf1"]);
    assert!(
        drain.contains("in service") && drain.contains("drained"),
        "{drain}"
    );
    assert!(
        cli.refused(&["switch", "plan"]).contains("--allocate"),
        "one is required"
    );

    // Somebody brings a port down by hand, and the site keeps that.
    running.switch.drift(|state| {
        let port = state.model.ports.get_mut("swp1").unwrap();
        port.admin_up = false;
    });
    let held = shown(&cli, |switch| {
        switch["fabric"]["differences"] != Value::Array(vec![])
    })
    .await;
    let difference = &held["fabric"]["differences"][0];
    assert_eq!(difference["object"], "port swp1", "{held:#}");
    assert_eq!(difference["wanted"], "up");
    assert_eq!(difference["seen"], "down");
    assert_eq!(difference["state"], "FABRIC_DIFFERENCE_STATE_HELD");
    let diff = cli.ok(&["switch", "diff", "leaf1"]);
    assert!(
        diff.contains("held") && diff.contains("was changed by hand"),
        "{diff}"
    );
    println!("{diff}");
    let ports = cli.ok(&["switch", "ports", "leaf1"]);
    assert!(ports.contains("was changed by hand"), "{ports}");
    let all = cli.ok(&["switch", "diff", "--partition", "lab"]);
    assert!(all.contains("port swp1"), "of all switches: {all}");
    assert!(cli.refused(&["switch", "diff", "leaf7"]).contains("leaf7"));

    let drained = cli.ok(&["switch", "drain", "leaf1"]);
    assert!(drained.contains("draining"), "{drained}");
    let drained = shown(&cli, |switch| switch["fabric"]["drainedAt"].is_string()).await;
    assert!(drained["fabric"]["drainedAt"].is_string());
    let list = cli.ok(&["switch", "ls"]);
    assert!(list.contains("drain") && list.contains("1/2"), "{list}");
    let list: Value = serde_json::from_str(&cli.ok(&["switch", "ls", "-o", "json"])).unwrap();
    assert!(list[0]["fabric"]["drainedAt"].is_string(), "{list:#}");
    let back = cli.ok(&["switch", "undrain", "leaf1"]);
    assert!(back.contains("in service"), "{back}");
    let nobody = "00000000-0000-4000-8000-000000000099";
    let trace = ["network", "trace", "--from", nobody, "--to", "10.0.0.1"];
    assert!(cli.refused(&trace).contains(nobody));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_leaf_is_replaced_by_a_new_one() {
    let Some(program) = metalmesh() else { return };
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let cluster = with_partition(Cluster::form(&dir.path().join("nodes"))).await;
    let config = cluster.nodes[0].dir.join("context.yaml");
    let cli = Cli { program, config };
    let ports = ["swp1", "swp2", "swp3"];
    let twin_args = invited_as(&cluster, 0, dir.path(), "leaf2").await;
    let twin = Running::start_on(&twin_args, DriftPolicy::Heal, &ports).await;
    let old_args = invited(&cluster, 0, dir.path()).await;
    let old = Running::start(&old_args).await;
    shown(&cli, |switch| {
        switch["fabric"]["ports"].as_array().map_or(0, Vec::len) == 2
    })
    .await;
    eventually("the twin", || async {
        let shown = cli.ok(&["switch", "ls"]);
        shown.contains("leaf2").then_some(()).ok_or(shown)
    })
    .await;
    cli.ok(&["switch", "port", "leaf2", "swp3", "down"]);
    cli.ok(&["switch", "port", "leaf1", "swp2", "down"]);
    old.stop().await;

    // The dead one's key must not come back; the new one joins with a key of its own.
    cli.ok(&[
        "identity",
        "revoke",
        "partition/lab/core/leaf1",
        "--reason",
        "it is dead",
    ]);
    cli.ok(&["switch", "replace", "leaf1"]);
    let heir = dir.path().join("heir");
    std::fs::create_dir(&heir).unwrap();
    let args = order_ticket(&cluster, 0, &heir, "leaf1", true).await;
    let args = args.unwrap();
    let new = Running::start_on(&args, DriftPolicy::Heal, &ports).await;
    let switch = shown(&cli, |switch| {
        switch["replaceMode"] == "SWITCH_REPLACE_MODE_OPERATIONAL"
            && switch["fabric"]["connected"] == true
            && switch["fabric"]["differences"] == Value::Array(vec![])
    })
    .await;
    let up = |port: usize| switch["fabric"]["ports"][port]["desired"]["adminUp"].clone();
    assert_eq!(
        [up(0), up(1), up(2)],
        [true, false, false],
        "its own port, and the twin's new one"
    );
    for running in [new, twin] {
        running.stop().await;
    }
}
