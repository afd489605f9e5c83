//! Agents of the published stack: what they say over Connect in JSON.

use std::fs;
use std::path::Path;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::cli::Cli;

/// The machine that there is.
pub(crate) const MACHINE: &str = "00000000-0000-4000-8000-00000000000a";

/// An agent with a token.
pub(crate) struct Agent {
    http: Client,
    api: String,
    token: String,
}

impl Agent {
    /// One of partition lab, by a token that the command line makes.
    pub(crate) fn of(cli: &Cli, api: &str, dir: &Path) -> Self {
        let secret = dir.join("agent");
        let token = ["token", "create", "--infra-role", "editor", "--label"];
        let rest = [
            "metalmesh.dev/partition=lab",
            "--out",
            secret.to_str().unwrap(),
        ];
        cli.ok(&[&token[..], &rest].concat());
        // Another test may have chosen already.
        let _chosen = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: Client::new(),
            api: api.to_owned(),
            token: fs::read_to_string(&secret).unwrap().trim().to_owned(),
        }
    }

    fn request(&self, method: &str, content: &str) -> RequestBuilder {
        let url = format!("{}/metalstack.infra.v2.{method}", self.api);
        let request = self.http.post(url).header(CONTENT_TYPE, content);
        request.header(AUTHORIZATION, format!("Bearer {}", self.token))
    }

    async fn call(&self, method: &str, body: Value) -> Value {
        let request = self.request(method, "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{method}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// `serial` tells this device from another one of the same name.
    pub(crate) async fn switch(&self, id: &str, serial: &str) {
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

    /// A machine that hears two switches at the same port of each, and its hammer.
    pub(crate) async fn machine(&self, switches: [&str; 2]) -> Self {
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
        let hammer = Self {
            http: self.http.clone(),
            api: self.api.clone(),
            token: made["secret"].as_str().unwrap().to_owned(),
        };
        let machine = json!({"uuid": MACHINE, "partition": "lab", "hardware": hardware,
            "bios": {"version": "2.4", "vendor": "Bench", "date": "01/02/2026"}});
        hammer.call("BootService/Register", machine).await;
        hammer
    }

    /// The machine waits to be allocated as long as the answer is held.
    pub(crate) async fn wait(&self) -> Response {
        let wanted = json!({"uuid": MACHINE}).to_string();
        let length = u32::try_from(wanted.len()).unwrap().to_be_bytes();
        let message = [&[0][..], &length, wanted.as_bytes()].concat();
        let request = self.request("BootService/Wait", "application/connect+json");
        let answer = request.body(message).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        answer
    }
}
