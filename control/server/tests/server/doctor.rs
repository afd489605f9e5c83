//! The doctor on real nodes: one alone, and three of which one is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::time::Instant;

use proto_mesh::{BmcReport, BmcServiceClient, BmcStatus};
use serde_json::Value;

use crate::agent::three;
use crate::cli::{Cli, metalmesh};
use crate::daemon::{Daemon, PATIENCE};
use crate::metrics::{MACHINE, bmc, measured};

/// A machine whose BMC does not tell its MAC address.
const OTHER: &str = "11111111-2222-4333-8444-666666666666";

/// The report, and what the program ended with.
fn examine(cli: &Cli, arguments: &[&str]) -> (Vec<Value>, i32) {
    let all = [&["doctor", "-o", "json"], arguments].concat();
    let Output {
        status,
        stdout,
        stderr,
    } = cli.command(&all).output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let error = String::from_utf8_lossy(&stderr);
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{error}"));
    (report.as_array().unwrap().clone(), status.code().unwrap())
}

fn of<'a>(report: &'a [Value], code: &str) -> Vec<(&'a str, &'a str)> {
    let lines = report.iter().filter(|line| line["code"] == code);
    lines
        .map(|line| {
            (
                line["level"].as_str().unwrap(),
                line["what"].as_str().unwrap(),
            )
        })
        .collect()
}

/// What is wrong with the one machine, chosen in different ways.
fn issues(cli: &Cli) {
    let list = |arguments: &[&str]| -> Vec<Value> {
        let all = [&["machine", "issues", "-o", "json"], arguments].concat();
        let all: Value = serde_json::from_str(&cli.ok(&all)).unwrap();
        all.as_array().unwrap().clone()
    };
    let codes = |lines: &[Value]| -> Vec<String> {
        let codes = lines
            .iter()
            .map(|it| it["code"].as_str().unwrap().to_owned());
        codes.collect()
    };
    let all = list(&[]);
    assert!(all.len() >= 3, "{all:?}");
    for line in &all {
        assert!(line["machine"] == MACHINE || line["machine"] == OTHER);
        for field in ["severity", "what", "why", "mend"] {
            assert!(!line[field].as_str().unwrap().is_empty(), "{field}: {line}");
        }
        let doc = format!(
            "docs/reference/issues.md#{}",
            line["code"].as_str().unwrap()
        );
        assert!(line["doc"].as_str().unwrap().ends_with(&doc), "{line}");
    }
    let first = codes(&all)[0].clone();
    let only = codes(&list(&["--only", &first]));
    assert!(!only.is_empty() && only.iter().all(|it| *it == first));
    assert!(!codes(&list(&["--omit", &first])).contains(&first));
    let major = list(&["--severity", "major"]);
    let minor = major.iter().any(|it| it["severity"] == "minor");
    assert!(!minor && major.len() < all.len(), "{major:?}");
    let of_one = list(&[OTHER]);
    assert!(of_one.iter().all(|it| it["machine"] == OTHER), "{of_one:?}");
    assert!(
        codes(&of_one).contains(&"bmc-without-mac".to_owned()),
        "{of_one:?}"
    );
    let told = cli.ok(&["machine", "issues", OTHER]);
    let mend = format!("metalmesh machine bmc {OTHER}");
    assert!(told.contains("  why: ") && told.contains(&mend), "{told}");
    let refused = cli.refused(&["machine", "issues", "--only", "weather"]);
    assert!(refused.contains("crashloop"), "{refused}");
}

fn cli(program: &Path, context: &Path) -> Cli {
    Cli {
        program: program.to_owned(),
        config: context.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_node_with_a_machine_and_an_open_key() {
    let Some(program) = metalmesh() else { return };
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let (cluster, _) = measured(dir.path()).await;
    let bmc = bmc(&cluster, dir.path()).await;
    let reading = BmcStatus {
        machine_uuid: OTHER.into(),
        address: "10.1.2.4".into(),
        power_state: "ON".into(),
        age_ms: 0,
        ..Default::default()
    };
    let report = BmcReport {
        bmcs: vec![reading],
    };
    let client: BmcServiceClient = bmc.client();
    client.report(report).await.unwrap();
    let home = &cluster.nodes[0].dir;
    let cli = cli(&program, &home.join("context.yaml"));

    // How full and how fast the disk is, is this host's business.
    let (report, code) = examine(&cli, &["--omit", "disk,log-sync"]);
    for (code, level) in [
        ("context-file", "OK"),
        ("key-files", "OK"),
        ("api", "OK"),
        ("api-certificate", "OK"),
        ("mesh", "OK"),
        ("clock", "OK"),
        ("cluster-time", "OK"),
        ("nodes-asked", "OK"),
        ("leader", "OK"),
        ("quorum", "WARN"),
        ("lag", "OK"),
        ("versions", "OK"),
        ("snapshot", "OK"),
        ("backup", "WARN"),
        ("authority", "OK"),
        ("partitions", "OK"),
        ("agents", "OK"),
        ("machines", "WARN"),
    ] {
        let lines = of(&report, code);
        let worst = lines.iter().any(|(it, _)| *it == level);
        assert!(worst, "{code}: {lines:?}");
    }
    assert_eq!(code, 1, "{report:?}");
    let mend = report.iter().find(|it| it["code"] == "machines").unwrap();
    let mend = mend["mend"].as_str().unwrap();
    assert!(
        mend.starts_with("metalmesh machine issues --only "),
        "{mend}"
    );
    let (few, code) = examine(&cli, &["--only", "leader,clock"]);
    assert_eq!((few.len(), code), (2, 0), "{few:?}");
    let (rest, code) = examine(&cli, &["--omit", "quorum,backup,machines,disk,log-sync"]);
    assert_eq!(code, 0, "{rest:?}");
    assert!(of(&rest, "quorum").is_empty());

    issues(&cli);

    // What others may read is told, of the node and of the context.
    let context = home.join("context.yaml");
    for file in [home.join("data/seal.key"), context.clone()] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let lines = cli.command(&["doctor", "--only", "key-files,context-file"]);
    let output = { lines }.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(
        text.lines().filter(|it| it.starts_with("FAIL ")).count(),
        2,
        "{text}"
    );
    assert!(
        text.contains("seal.key") && text.contains("chmod 600"),
        "{text}"
    );
    let unknown = cli
        .command(&["doctor", "--only", "weather"])
        .output()
        .unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    bmc.close().await;
}

#[test]
fn a_fresh_node_of_the_embedded_default_fails_no_check() {
    let Some(program) = metalmesh() else { return };
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start_temporary(dir.path());
    let cli = cli(&program, daemon.config());
    let (report, code) = examine(&cli, &["--omit", "disk,log-sync"]);
    let failed: Vec<_> = report
        .iter()
        .filter(|line| line["level"] == "FAIL")
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert_ne!(code, 2, "{report:?}");
    assert_eq!(of(&report, "key-files")[0].0, "OK");
    let accepted = cli.ok(&["cluster", "accept-time", "-o", "json"]);
    let accepted: Value = serde_json::from_str(&accepted).unwrap();
    assert!(
        accepted["time"].is_string() && accepted["held"].is_null(),
        "{accepted}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn three_nodes_and_one_of_them_is_killed() {
    let Some(program) = metalmesh() else { return };
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let mut cluster = three(dir.path()).await;
    let cli = cli(&program, &cluster.nodes[0].dir.join("context.yaml"));
    let others: Vec<String> = (cluster.nodes[1..].iter())
        .flat_map(|node| ["--node".to_owned(), node.api.clone()])
        .collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let (report, _) = examine(&cli, &others);
    for code in [
        "api",
        "mesh",
        "clock",
        "nodes-asked",
        "leader",
        "quorum",
        "lag",
        "versions",
    ] {
        let lines = of(&report, code);
        assert!(lines.iter().all(|(level, _)| *level == "OK"), "{lines:?}");
    }
    assert_eq!(of(&report, "clock").len(), 3);
    let (alone, _) = examine(&cli, &["--only", "nodes-asked"]);
    assert_eq!(of(&alone, "nodes-asked")[0].0, "WARN", "{alone:?}");

    cluster.nodes[2].kill();
    // Until the leader, perhaps a new one, has missed it.
    let until = Instant::now() + PATIENCE;
    loop {
        let (report, code) = examine(&cli, &others);
        let quorum = of(&report, "quorum");
        let is_told = of(&report, "leader")[0].0 == "OK"
            && quorum
                .iter()
                .any(|(_, what)| what.contains("node 3 is not heard"))
            && quorum[0].1.starts_with("2 of 3 voters");
        if is_told {
            assert_eq!(quorum[0].0, "WARN", "{quorum:?}");
            let api = of(&report, "api");
            assert_eq!((api[2].0, code), ("FAIL", 2), "{api:?}");
            let mesh = of(&report, "mesh");
            assert!(mesh.iter().any(|(level, _)| *level == "WARN"), "{mesh:?}");
            return;
        }
        assert!(Instant::now() < until, "{report:?}");
    }
}
