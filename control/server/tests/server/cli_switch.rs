//! The command line moves a rack's cables to another switch, and a broken switch's to its heir.

use std::fs;

use reqwest::Client;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::{Value, json};

use crate::cli::Cli;

const MACHINE: &str = "00000000-0000-4000-8000-00000000000a";

/// An agent of the published stack, over Connect in JSON.
struct Agent<'a> {
    http: &'a Client,
    api: &'a str,
    token: String,
}

impl Agent<'_> {
    async fn call(&self, method: &str, body: Value) -> Value {
        let url = format!("{}/metalstack.infra.v2.{method}", self.api);
        let request = self.http.post(url).header(CONTENT_TYPE, "application/json");
        let request = request.header(AUTHORIZATION, format!("Bearer {}", self.token));
        let answer = request.body(body.to_string()).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{method}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// `serial` tells this device from another one of the same name.
    async fn switch(&self, id: &str, serial: &str) {
        let ports = [0, 4].map(|port| {
            json!({"name": format!("Ethernet{port}"), "identifier": format!("{serial}-{port}")})
        });
        let switch = json!({"id": id, "partition": "lab", "rack": "rack-1",
            "managementIp": "10.9.1.1", "replaceMode": "SWITCH_REPLACE_MODE_OPERATIONAL",
            "nics": ports, "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
                "metalCoreVersion": "v0.18"}});
        self.call("SwitchService/Register", json!({ "switch": switch }))
            .await;
    }

    /// A machine that hears two switches at the same port of each.
    async fn machine(&self, switches: [&str; 2]) {
        let id = json!({"uuid": MACHINE, "partition": "lab"});
        self.call("BootService/Dhcp", id).await;
        let wanted = json!({"uuid": MACHINE, "user": "pixiecore", "expires": "3600s"});
        let made = self.call("BootService/MachineToken", wanted).await;
        let nics = [0, 1].map(|number: usize| {
            let neighbour = json!({"mac": format!("02:00:00:00:01:0{number}"),
                "name": "Ethernet0", "identifier": "Ethernet0", "hostname": switches[number]});
            json!({"mac": format!("02:00:00:00:00:0{number}"), "name": format!("eth{number}"),
                "neighbors": [neighbour]})
        });
        let hardware = json!({"memory": "2147483648", "nics": nics,
            "cpus": [{"cores": 2, "threads": 2}],
            "disks": [{"name": "/dev/sda", "size": "21474836480"}]});
        let hammer = Agent {
            token: made["secret"].as_str().unwrap().to_owned(),
            ..*self
        };
        let machine = json!({"uuid": MACHINE, "partition": "lab", "hardware": hardware});
        hammer.call("BootService/Register", machine).await;
    }
}

/// Whether the machine hangs at a switch, and how the switch stands to being replaced.
fn shown(cli: &Cli, switch: &str) -> (bool, String) {
    let text = cli.ok(&["switch", "show", switch, "-o", "json"]);
    let switch: Value = serde_json::from_str(&text).unwrap();
    let mode = switch["replaceMode"].as_str().unwrap_or_default();
    let has = switch["machineConnections"].to_string().contains(MACHINE);
    (has, mode.to_owned())
}

#[tokio::test]
async fn cables_move_and_a_broken_switch_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let Some((cli, daemon)) = Cli::fresh(dir.path()) else {
        return;
    };
    cli.ok(&["partition", "create", "lab"]);
    let secret = dir.path().join("agent");
    let token = ["token", "create", "--infra-role", "editor", "--label"];
    let rest = [
        "metalmesh.dev/partition=lab",
        "--out",
        secret.to_str().unwrap(),
    ];
    cli.ok(&[&token[..], &rest].concat());
    let _provider = rustls::crypto::ring::default_provider().install_default();
    let http = Client::new();
    let agent = Agent {
        http: &http,
        api: &daemon.api,
        token: fs::read_to_string(&secret).unwrap().trim().to_owned(),
    };
    for switch in ["leaf1", "leaf2", "leaf3"] {
        agent.switch(switch, switch).await;
    }
    agent.machine(["leaf1", "leaf2"]).await;
    assert!(shown(&cli, "leaf1").0 && shown(&cli, "leaf2").0);

    let refused = cli.refused(&["switch", "rm", "leaf1"]);
    assert!(refused.contains("leaf1"), "{refused}");
    let moved = cli.ok(&["switch", "migrate", "leaf1", "leaf3"]);
    assert!(moved.contains("leaf3"), "{moved}");
    assert!(!shown(&cli, "leaf1").0 && shown(&cli, "leaf3").0);
    let again = cli.refused(&["switch", "migrate", "leaf2", "leaf3"]);
    assert!(
        again.contains(MACHINE) && again.contains("cables go to"),
        "{again}"
    );
    cli.ok(&["switch", "rm", "leaf1"]);

    const REPLACE: &str = "SWITCH_REPLACE_MODE_REPLACE";
    cli.ok(&["switch", "replace", "leaf2"]);
    assert_eq!(shown(&cli, "leaf2").1, REPLACE);
    cli.ok(&["switch", "replace", "leaf2", "--cancel"]);
    assert_ne!(shown(&cli, "leaf2").1, REPLACE);
    let replaced = cli.ok(&["switch", "replace", "leaf2"]);
    assert!(replaced.contains("leaf2"), "{replaced}");
    cli.ok(&["switch", "port", "leaf3", "Ethernet0", "down"]);
    agent.switch("leaf2", "its-heir").await;
    let (has, mode) = shown(&cli, "leaf2");
    assert!(has && mode != REPLACE, "{mode}");
}
