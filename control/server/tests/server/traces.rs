//! Traces from a call to what an agent makes of it, as a collector of others reads them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use agents_kit::{AgentArgs, AgentKind, StateDir};
use base_telemetry::traces::TraceContext;
use bmc_agent::config::Target;
use bmc_agent::driver::{Action, DriveError, Driver, Power, Reading};
use bmc_agent::{BmcAgent, Config};
use futures::future::BoxFuture;
use proto_public::admin::v2::{
    MachineServiceBmcCommandRequest, MachineServiceGetRequest, ProjectServiceListRequest,
};
use proto_public::api::v2::MachineBmcCommand;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Request;

use crate::agent::with_partition;
use crate::collector::Collector;
use crate::metrics;
use crate::nodes::{Cluster, eventually};
use crate::s3::Authority;

const MACHINE: &str = "11111111-2222-4333-8444-555555555555";
const POWER_ON: &str = "metalstack.admin.v2.MachineService/BMCCommand";

/// The one span of a name in a trace, once it is there.
async fn told(collector: &Collector, trace: &str, name: &str) -> Value {
    eventually(name, || async {
        let spans = collector.spans();
        let mut of_name = (spans.iter()).filter(|it| it["trace"] == trace && it["name"] == name);
        let found = of_name.next().ok_or_else(|| "not yet".to_owned())?;
        assert!(of_name.next().is_none(), "{name} twice: {spans:?}");
        Ok(found.clone())
    })
    .await
}

/// A BMC that does what it is told.
struct Obedient;

impl Driver for Obedient {
    fn read<'a>(&'a self, target: &'a Target) -> BoxFuture<'a, Result<Reading, DriveError>> {
        let machines = target.machine.into_iter().collect();
        Box::pin(async {
            Ok(Reading {
                machines,
                interface: "redfish",
                ..Reading::default()
            })
        })
    }

    fn act<'a>(
        &'a self,
        _: &'a Target,
        _: Action,
        _: Instant,
    ) -> BoxFuture<'a, Result<Power, DriveError>> {
        Box::pin(async { Ok(Power::On) })
    }
}

fn bmc_config(dir: &Path) -> Config {
    let login = dir.join("login.toml");
    fs::write(
        &login,
        "[default]\nuser = \"admin\"\npassword = \"secret\"\n",
    )
    .unwrap();
    fs::set_permissions(&login, fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        "credentials = \"login.toml\"\ninterval_s = 5\n\
         [[bmc]]\naddress = \"127.0.0.1\"\nmachine_uuid = \"{MACHINE}\"\n"
    );
    fs::write(dir.join("bmc.toml"), text).unwrap();
    Config::read(&dir.join("bmc.toml")).unwrap()
}

async fn bmc_args(cluster: &Cluster, dir: &Path, collector: &Collector) -> AgentArgs {
    AgentArgs {
        otlp: Some(format!("http://127.0.0.1:{}/v1/traces", collector.port)),
        ..metrics::bmc_args(cluster, dir).await
    }
}

fn traced<T>(request: T, traceparent: &str) -> Request<T> {
    let mut request = Request::new(request);
    let value = traceparent.parse().unwrap();
    request.metadata_mut().insert("traceparent", value);
    request
}

fn power_on() -> MachineServiceBmcCommandRequest {
    MachineServiceBmcCommandRequest {
        uuid: MACHINE.into(),
        command: MachineBmcCommand::On.into(),
    }
}

fn trace(context: TraceContext) -> String {
    context.to_string()[3..35].to_owned()
}

fn span(context: TraceContext) -> String {
    context.to_string()[36..52].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_and_what_the_agent_makes_of_it_are_one_trace() {
    agents_kit::install_crypto_provider();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let authority = Authority::new(&dir.join("tls"));
    let of_control = Collector::start(dir, "control", &[&authority.certificate, &authority.key]);
    let of_agents = Collector::start(dir, "agents", &[]);
    let (Some(of_control), Some(of_agents)) = (of_control, of_agents) else {
        return;
    };
    let token = dir.join("authorization");
    fs::write(&token, "Bearer collectors-token\n").unwrap();
    let config = format!(
        "[traces]\nurl = 'https://127.0.0.1:{}/v1/traces'\nca_file = '{}'\n\
         authorization_file = '{}'\n",
        of_control.port,
        authority.ca.display(),
        token.display()
    );
    let cluster = with_partition(Cluster::form_with(&dir.join("nodes"), &config)).await;
    let args = bmc_args(&cluster, dir, &of_agents).await;
    let agent = args.start(AgentKind::Bmc).await.unwrap();
    let sending = args.send_spans(&agent, AgentKind::Bmc).unwrap();
    let state = StateDir::open(&args.state_dir).unwrap();
    let bmc = BmcAgent::with_driver(agent, bmc_config(dir), state, Arc::new(Obedient)).unwrap();
    let stop = CancellationToken::new();
    let mut working = JoinSet::new();
    working.spawn(bmc.run(stop.clone()));
    let admin = cluster.client(0);
    eventually("machine", || async {
        let uuid = MACHINE.to_owned();
        let found = admin
            .admin_machines()
            .get(MachineServiceGetRequest { uuid })
            .await;
        found.map(|_| ()).map_err(|e| e.to_string())
    })
    .await;

    let outside = TraceContext::root();
    let call = traced(power_on(), &outside.to_string());
    let ordered = admin.admin_machines().bmc_command(call).await.unwrap();
    let order = ordered.into_inner().task_id;
    let trace_id = trace(outside);
    let served = told(&of_control, &trace_id, POWER_ON).await;
    let ordered = told(&of_control, &trace_id, "order power-on").await;
    let done = told(&of_agents, &trace_id, "power-on").await;
    assert_eq!(served["parent"], span(outside));
    assert_eq!(ordered["parent"], served["id"]);
    assert_eq!(done["parent"], ordered["id"]);
    assert_eq!(
        [&served["service"], &ordered["service"], &done["service"]],
        ["metalmeshd", "metalmeshd", "metalmesh-bmc"]
    );
    assert_eq!(
        [&served["kind"], &ordered["kind"], &done["kind"]],
        [2, 4, 5]
    );
    assert_eq!(done["attributes"]["metalmesh.order"], order);
    assert_eq!(done["attributes"]["metalmesh.machine"], MACHINE);
    assert_eq!(done["resource"]["metalmesh.partition"], "lab");
    assert!(done["began"].as_u64() > served["began"].as_u64());

    not_traced(&cluster, &of_control).await;
    stop.cancel();
    working.join_all().await;
    sending.end().await;
    let text = of_control.text() + &of_agents.text();
    assert!(!text.contains(&cluster.token) && !text.contains("secret"));
}

/// What callers say that is not well formed, not wanted or said by nobody leads to no span of
/// theirs, and never to a call that fails.
async fn not_traced(cluster: &Cluster, collector: &Collector) {
    let admin = cluster.client(0);
    let list = || ProjectServiceListRequest { query: None };
    let [unwanted, refused, last] = [(); 3].map(|()| TraceContext::root());
    let unwanted = TraceContext {
        is_sampled: false,
        ..unwanted
    };
    for text in ["", "00-x", &"0".repeat(4000), &unwanted.to_string()] {
        let call = traced(list(), text);
        admin.admin_projects().list(call).await.unwrap();
    }
    let stranger = cluster.nodes[0].client("no.such.token");
    let call = traced(list(), &refused.to_string());
    stranger.admin_projects().list(call).await.unwrap_err();
    let call = traced(list(), &last.to_string());
    admin.admin_projects().list(call).await.unwrap();

    let list = "metalstack.admin.v2.ProjectService/List";
    let last_told = told(collector, &trace(last), list).await;
    assert_eq!(last_told["parent"], span(last));
    let text = collector.text();
    assert!(!text.contains(&trace(unwanted)) && !text.contains(&trace(refused)));
    assert_eq!(text.matches(list).count(), 1, "{text}");
}
