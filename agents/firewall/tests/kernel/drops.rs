//! Reported packets, and the accounting of internal and external traffic.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use agents_firewall::drops::DropEvent;

use crate::namespace::can_run;
use crate::site::{CONTROLLERS, INSIDE, INSIDE6, NETWORKS, OUTSIDE, OUTSIDE6, Site, arrives, udp};

const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn dropped_packets_are_listed_by_the_agent() {
    if !can_run() {
        return;
    }
    let site = Site::new("drops");
    let folder = tempfile::tempdir().unwrap();
    let (config, state) = (
        folder.path().join("config.yaml"),
        folder.path().join("state"),
    );
    let rest = "    cwnp: {egress: [{name: dns, log: true, ports: [{protocol: UDP, port: 53}]}]}\n";
    fs::write(&config, format!("{NETWORKS}{rest}{CONTROLLERS}")).unwrap();
    let program = env!("CARGO_BIN_EXE_metalmesh-firewall");
    let mut agent = Command::new("ip")
        .args([
            "netns",
            "exec",
            &site.router.0,
            program,
            "run",
            "--no-rules-file",
        ])
        .arg("--config")
        .arg(&config)
        .arg("--state-dir")
        .arg(&state)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let list = || -> Vec<DropEvent> {
        let mut command = Command::new(program);
        command
            .args(["drops", "-o", "json", "--state-dir"])
            .arg(&state);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let until = Instant::now() + DEADLINE;
    let has = |is_drop: bool, to: &str, port: u16| {
        list().iter().any(|event| match event {
            DropEvent::Packet(record) => {
                (record.is_drop, record.destination_port) == (is_drop, Some(port))
                    && record.destination.to_string() == to
                    && (record.input.as_str(), record.output.as_str()) == ("vrf42", "vrf104")
            }
            DropEvent::Lost { .. } => false,
        })
    };
    loop {
        assert!(
            Instant::now() < until,
            "the packets are not listed: {:?}",
            list()
        );
        arrives(
            &udp(&site.inside, INSIDE, 0),
            &udp(&site.outside, OUTSIDE, 54),
        );
        arrives(
            &udp(&site.inside, INSIDE6, 0),
            &udp(&site.outside, OUTSIDE6, 55),
        );
        arrives(
            &udp(&site.inside, INSIDE, 0),
            &udp(&site.outside, OUTSIDE, 53),
        );
        if has(true, OUTSIDE, 54) && has(true, OUTSIDE6, 55) && has(false, OUTSIDE, 53) {
            break;
        }
    }
    agent.kill().unwrap();
    agent.wait().unwrap();
    // The socket of an agent that is gone is no reader's trouble.
    let output = Command::new(program)
        .args(["drops", "--state-dir"])
        .arg(&state)
        .output()
        .unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("does the agent run?"), "{text}");
}

#[test]
fn internal_and_external_traffic_is_counted_apart() {
    if !can_run() {
        return;
    }
    let site = Site::new("acct");
    let rest = "      internalPrefixes: [203.0.113.0/25, 'fd00:b::/64']
    cwnp: {egress: [{name: all}]}
";
    site.apply(rest);
    site.outside.ip("addr add 203.0.113.200/32 dev eth0");
    let count = |name: &str| site.counted(name).packets;
    let names = ["internal_out", "internal_in", "external_out", "external_in"];
    for (from, to, expected) in [
        (INSIDE, OUTSIDE, [1, 1, 0, 0]),
        (INSIDE6, OUTSIDE6, [1, 1, 0, 0]),
        (INSIDE, "203.0.113.200", [0, 0, 1, 1]),
    ] {
        let before = names.map(count);
        let (client, server) = (udp(&site.inside, from, 0), udp(&site.outside, to, 5000));
        assert!(arrives(&client, &server));
        assert!(arrives(&server, &client));
        let after = names.map(count);
        let grown: Vec<u64> = before
            .iter()
            .zip(after)
            .map(|(old, new)| new - old)
            .collect();
        assert_eq!(grown, expected, "{from} to {to}");
    }
    assert_eq!(site.apply(rest), Vec::new());
}
