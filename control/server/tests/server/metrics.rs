//! What a node and an agent tell Prometheus, after real calls and with a real machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use agents_kit::{Agent, AgentArgs, AgentKind, KeyArgs};
use proto_mesh::{BmcOrderDone, BmcReport, BmcServiceClient, BmcStatus};
use proto_public::admin::v2::{
    MachineServiceBmcCommandRequest, MachineServiceGetRequest, ProjectServiceListRequest,
};
use proto_public::api::v2::MachineBmcCommand;
use proto_public::metalmesh::admin::v1::{self as mesh_admin, JoinServiceCreateRequest};
use serde_json::Value;

use crate::agent::{Running, invited, with_partition, write_private};
use crate::nodes::{Cluster, eventually, free_tcp};
use crate::python;
use crate::scrape::{Scrape, get};

const PARSER: &str = "prometheus-client==0.22.1";
pub(crate) const MACHINE: &str = "11111111-2222-4333-8444-555555555555";

/// A node that serves metrics, with a partition; and where.
pub(crate) async fn measured(dir: &Path) -> (Cluster, String) {
    let address = format!("127.0.0.1:{}", free_tcp());
    let more = format!("[metrics]\nlisten = \"{address}\"\n");
    let cluster = Cluster::form_with(&dir.join("nodes"), &more);
    (with_partition(cluster).await, address)
}

/// What a BMC agent is started with, its ticket among it.
pub(crate) async fn bmc_args(cluster: &Cluster, dir: &Path) -> AgentArgs {
    let state_dir: PathBuf = dir.join("bmc");
    let key = KeyArgs {
        state_dir: state_dir.clone(),
    };
    let request = JoinServiceCreateRequest {
        kind: mesh_admin::AgentKind::Bmc.into(),
        partition: "lab".into(),
        id: "bmc-of-lab".into(),
        key_sha256: key.fingerprint().unwrap(),
        minutes: 5,
        tpm_ek_sha256: String::new(),
        tpm_ek_certificate: Vec::new(),
        reenrol: false,
    };
    let made = cluster.client(0).joins().create(request).await.unwrap();
    let ticket = dir.join("bmc.ticket");
    write_private(&ticket, &made.into_inner().secret);
    AgentArgs {
        control: vec![cluster.nodes[0].mesh.clone()],
        state_dir,
        ticket_file: Some(ticket),
        offline: false,
        tpm: agents_kit::tpm::TPM_PATH.into(),
        log: agents_kit::LogFormat::default(),
        metrics: None,
        otlp: None,
    }
}

/// A BMC agent's session, and a machine that it has found.
pub(crate) async fn bmc(cluster: &Cluster, dir: &Path) -> Agent {
    let args = bmc_args(cluster, dir).await;
    let agent = args.start(AgentKind::Bmc).await.unwrap();
    let client: BmcServiceClient = agent.client();
    let reading = BmcStatus {
        machine_uuid: MACHINE.into(),
        address: "10.1.2.3".into(),
        mac: "02:00:00:00:00:01".into(),
        power_state: "ON".into(),
        age_ms: 0,
        ..Default::default()
    };
    let report = BmcReport {
        bmcs: vec![reading],
    };
    client.report(report).await.unwrap();
    agent
}

/// The parser of another project, which is strict.
fn judged(dir: &Path, scrape: &Scrape) {
    let python = match python::environment(PARSER) {
        Ok(python) => python,
        Err(reason) => {
            println!("SKIPPED: {PARSER} cannot be installed: {reason}");
            return;
        }
    };
    let file = dir.join("metrics.txt");
    std::fs::write(&file, &scrape.text).unwrap();
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        print(len(list(parse(open(sys.argv[1]).read()))))";
    let output = Command::new(python)
        .args(["-c", script])
        .arg(&file)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let families = String::from_utf8(output.stdout).unwrap();
    assert_eq!(families.trim(), scrape.types.len().to_string());
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The metrics of a query's selectors, each with a label that the selector names.
fn selected(query: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in query.match_indices('{') {
        let name = query[..at].rsplit(|c| !is_part(c)).next().unwrap();
        let inside = query[at + 1..].split('}').next().unwrap();
        if name.starts_with("metalmesh_") {
            let matchers = inside.split(',');
            let labels = matchers.map(|matcher| matcher.split(['=', '!']).next().unwrap().trim());
            found.extend(labels.map(|label| (name, label)));
        }
    }
    found
}

#[test]
fn labels_of_selectors_are_found() {
    let none: &[(&str, &str)] = &[];
    for (query, expected) in [
        ("sum(metalmesh_a)", none),
        ("up{job=\"a\"} and {{ $value }}", none),
        (
            "metalmesh_a{b,c}",
            &[("metalmesh_a", "b"), ("metalmesh_a", "c")][..],
        ),
        (
            "x / rate(metalmesh_a{b=~\"1|2\", c!=\"d\"}[5m])",
            &[("metalmesh_a", "b"), ("metalmesh_a", "c")][..],
        ),
    ] {
        assert_eq!(selected(query), expected, "{query}");
    }
}

/// Every name in a query of the dashboard and of the alerts is one that somebody tells, and every
/// label in a selector is one that the metric has.
fn dashboard(scrapes: &[&Scrape]) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let board = std::fs::read_to_string(docs.join("reference/grafana.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|it| it["targets"].as_array());
    let mut queries: Vec<String> = targets
        .flatten()
        .map(|it| it["expr"].as_str().unwrap().to_owned())
        .collect();
    assert!(queries.len() > 30);
    for file in ["how-to/monitor.md", "operations/alerts.yml"] {
        queries.push(std::fs::read_to_string(docs.join(file)).unwrap());
    }
    for query in &queries {
        for (name, label) in selected(query) {
            let is_there = scrapes.iter().all(|scrape| scrape.may_have(name, label));
            assert!(is_there, "{name} has no label {label}: {query}");
        }
        for word in query.split(|c| !is_part(c)) {
            // `metalmesh_` is how names begin, and `process_` too.
            let is_name = word.starts_with("metalmesh_") || word.starts_with("process_");
            if is_name {
                let is_told = scrapes.iter().any(|it| it.tells(word));
                assert!(is_told, "nobody tells {word}: {query}");
            }
        }
    }
}

const LIST: &str = "/metalstack.admin.v2.ProjectService/List";
const GET_MACHINE: &str = "/metalstack.admin.v2.MachineService/Get";

/// Labels of a sample: name and value.
type SampleLabels = &'static [(&'static str, &'static str)];

/// Samples that a node must export: the metric, their labels, and their least sum.
const SAMPLES: &[(&str, SampleLabels, f64)] = &[
    (
        "metalmesh_api_calls_total",
        &[("method", LIST), ("code", "ok")],
        1.0,
    ),
    (
        "metalmesh_api_calls_total",
        &[("method", LIST), ("code", "unauthenticated")],
        1.0,
    ),
    (
        "metalmesh_api_calls_total",
        &[("method", GET_MACHINE), ("code", "not_found")],
        1.0,
    ),
    (
        "metalmesh_api_call_duration_seconds_count",
        &[("method", LIST)],
        2.0,
    ),
    ("metalmesh_api_refusals_total", &[("reason", "token")], 1.0),
    (
        "metalmesh_machines",
        &[("partition", "lab"), ("phase", "new")],
        1.0,
    ),
    (
        "metalmesh_machines_liveliness",
        &[("partition", "lab")],
        1.0,
    ),
    ("metalmesh_mesh_sessions", &[("kind", "core")], 1.0),
    ("metalmesh_mesh_sessions", &[("kind", "bmc")], 1.0),
    (
        "metalmesh_bmc_orders_ended_total",
        &[("action", "power-on"), ("outcome", "done")],
        1.0,
    ),
    (
        "metalmesh_mesh_handshakes_total",
        &[("outcome", "done")],
        2.0,
    ),
    (
        "metalmesh_enrolments_total",
        &[("method", "join"), ("outcome", "issued")],
        2.0,
    ),
    ("metalmesh_mesh_calls_total", &[("code", "ok")], 3.0),
    ("metalmesh_raft_role", &[("role", "leader")], 1.0),
    ("metalmesh_raft_log_index", &[("entry", "applied")], 5.0),
    ("metalmesh_raft_log_sync_duration_seconds_count", &[], 5.0),
    (
        "metalmesh_raft_log_sync_duration_seconds_bucket",
        &[("le", "+Inf")],
        5.0,
    ),
    ("metalmesh_store_bytes", &[("part", "log")], 1.0),
    ("metalmesh_audit_head", &[], 1.0),
    ("metalmesh_build_info", &[("program", "metalmeshd")], 1.0),
    ("metalmesh_authority_end_timestamp_seconds", &[], 1.7e9),
    ("process_resident_memory_bytes", &[], 1e6),
    ("process_open_fds", &[], 3.0),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_node_and_an_agent_tell_prometheus() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let (cluster, address) = measured(dir.path()).await;
    let bmc = bmc(&cluster, dir.path()).await;
    let mut args = invited(&cluster, 0, dir.path()).await;
    let agents = format!("127.0.0.1:{}", free_tcp());
    args.metrics = Some(agents.parse().unwrap());
    let running = Running::start(&args).await;
    running.session(true).await;
    let kept = args.serve_metrics(&running.agent, AgentKind::Core, None);
    let kept = kept.await;
    let kept = kept.unwrap();

    let list = || ProjectServiceListRequest { query: None };
    let admin = cluster.client(0);
    admin.admin_projects().list(list()).await.unwrap();
    let request = MachineServiceGetRequest {
        uuid: "00000000-0000-4000-8000-000000000001".into(),
    };
    admin.admin_machines().get(request).await.unwrap_err();
    let request = MachineServiceBmcCommandRequest {
        uuid: MACHINE.into(),
        command: MachineBmcCommand::On.into(),
    };
    let ordered = admin.admin_machines().bmc_command(request).await.unwrap();
    let done = BmcOrderDone {
        id: ordered.into_inner().task_id,
        power_state: "ON".into(),
        ..Default::default()
    };
    let client: BmcServiceClient = bmc.client();
    client.order_done(done).await.unwrap();
    let stranger = cluster.nodes[0].client("no.such.token");
    stranger.admin_projects().list(list()).await.unwrap_err();

    let scrape = eventually("scrape with all of it", || async {
        let scrape = Scrape::of(&address);
        let has = scrape.sum("metalmesh_mesh_sessions", &[]) >= 2.0
            && scrape.sum("metalmesh_bmc_orders_ended_total", &[]) >= 1.0
            && scrape.sum("metalmesh_api_refusals_total", &[]) >= 1.0;
        has.then_some(scrape).ok_or_else(|| "not yet".to_owned())
    })
    .await;
    scrape.check(&[MACHINE, "leaf1", "bmc-of-lab", "10.1.2.3"]);
    judged(dir.path(), &scrape);
    for (name, labels, least) in SAMPLES {
        let found = scrape.sum(name, labels);
        assert!(
            found >= *least,
            "{name}{labels:?}: {found}\n{}",
            scrape.text
        );
    }
    let lag = scrape.sum("metalmesh_raft_lag_entries", &[("node", "1")]);
    assert!(lag.abs() < 0.5, "{lag}");

    let of_agent = Scrape::of(&agents);
    of_agent.check(&[MACHINE, "leaf1"]);
    judged(dir.path(), &of_agent);
    let up = of_agent.sum("metalmesh_agent_session_up", &[]);
    let news = &[("step", "desired_state"), ("outcome", "news")];
    let passes = &[("step", "reconcile"), ("outcome", "done")];
    let steps = |labels| of_agent.sum("metalmesh_agent_steps_total", labels);
    assert!(
        up > 0.5 && steps(news) + steps(passes) >= 1.0,
        "{}",
        of_agent.text
    );

    dashboard(&[&scrape, &of_agent]);

    // Nothing else is there.
    assert!(get(&address, "/").0.starts_with("HTTP/1.1 404"));
    drop(kept);
    running.stop().await;
    bmc.close().await;
}
