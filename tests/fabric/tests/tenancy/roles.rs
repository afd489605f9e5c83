//! The boot server and the BMCs of the partition, played by the test.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use agents_kit::{Agent, AgentArgs, AgentKind, KeyArgs, LogFormat, run_desired};
use control_client::Client;
use proto_mesh::{
    BmcAction, BmcDesired, BmcDesiredRequest, BmcOrder, BmcOrderDone, BmcServiceClient,
    BootServiceClient,
};
use proto_public::metalmesh::admin::v1::{self as mesh_admin, JoinServiceCreateRequest};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::catalogue::PARTITION;
use super::control::Control;

/// Orders that a listener may fall behind.
const ORDERS_MAX: usize = 4096;
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
const POLL: Duration = Duration::from_millis(10);

/// The boot server and the BMCs.
pub(crate) struct Roles {
    pub(crate) pixie: BootServiceClient,
    /// Orders that a BMC has carried out, with the UUID of its machine.
    pub(crate) done: broadcast::Sender<(String, BmcAction)>,
    _pixie: Agent,
    _stop: tokio_util::sync::DropGuard,
    _tasks: JoinSet<()>,
}

impl Roles {
    pub(crate) async fn join(control: &Control, client: &Client) -> Self {
        let pixie = join(control, client, AgentKind::Pixie, "pixie1").await;
        let bmc = join(control, client, AgentKind::Bmc, "bmc1").await;
        let (done, _) = broadcast::channel(ORDERS_MAX);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(obey(bmc, done.clone(), stop.clone()));
        Self {
            pixie: pixie.client(),
            done,
            _pixie: pixie,
            _stop: stop.drop_guard(),
            _tasks: tasks,
        }
    }
}

/// Makes a key and a ticket for an agent, which joins when it starts.
pub(crate) async fn invite(
    client: &Client,
    kind: mesh_admin::AgentKind,
    id: &str,
    state_dir: &Path,
    ticket: &Path,
) {
    let key = KeyArgs {
        state_dir: state_dir.to_owned(),
    };
    let secret = join_ticket(client, kind, id, key.fingerprint().unwrap()).await;
    let mut file = fs::OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(ticket);
    file.unwrap().write_all(secret.as_bytes()).unwrap();
}

/// Makes a join ticket for an agent with a key.
pub(crate) async fn join_ticket(
    client: &Client,
    kind: mesh_admin::AgentKind,
    id: &str,
    key_sha256: String,
) -> String {
    let request = JoinServiceCreateRequest {
        kind: kind.into(),
        partition: PARTITION.into(),
        id: id.into(),
        key_sha256,
        minutes: 60,
        tpm_ek_sha256: String::new(),
        tpm_ek_certificate: Vec::new(),
        reenrol: false,
    };
    let made = client.joins().create(request).await.unwrap();
    made.into_inner().secret
}

async fn join(control: &Control, client: &Client, kind: AgentKind, id: &str) -> Agent {
    let state_dir = control.place(id);
    let ticket = control.place(&format!("{id}.ticket"));
    let of_api = match kind {
        AgentKind::Pixie => mesh_admin::AgentKind::Pixie,
        _ => mesh_admin::AgentKind::Bmc,
    };
    invite(client, of_api, id, &state_dir, &ticket).await;
    let args = AgentArgs {
        control: Vec::new(),
        state_dir,
        ticket_file: Some(ticket),
        offline: false,
        tpm: agents_kit::tpm::TPM_PATH.into(),
        log: LogFormat::default(),
        metrics: None,
        otlp: None,
    };
    args.start(kind).await.unwrap()
}

/// Carries out the orders one after the other, so that they are told in their order.
async fn obey(agent: Agent, done: broadcast::Sender<(String, BmcAction)>, stop: CancellationToken) {
    let client: BmcServiceClient = agent.client();
    let (orders, mut queue) = mpsc::unbounded_channel::<BmcOrder>();
    let mut tasks = JoinSet::new();
    let worker = client.clone();
    tasks.spawn(async move {
        while let Some(order) = queue.recv().await {
            carry_out(&worker, order, &done).await;
        }
    });
    let seen = Mutex::new(BTreeSet::new());
    let open = || {
        let client = client.clone();
        async move { client.desired(BmcDesiredRequest {}).await }
    };
    let on = |desired: BmcDesired, _| {
        for order in desired.orders {
            if seen.lock().unwrap().insert(order.id.clone()) {
                orders.send(order).unwrap();
            }
        }
        std::future::ready(())
    };
    run_desired(&agent, open, None, on, stop).await;
}

async fn carry_out(
    client: &BmcServiceClient,
    order: BmcOrder,
    done: &broadcast::Sender<(String, BmcAction)>,
) {
    let action = order.action();
    let is_off = matches!(action, BmcAction::PowerOff | BmcAction::BootPxe);
    let report = BmcOrderDone {
        id: order.id,
        error: String::new(),
        power_state: if is_off { "off" } else { "on" }.into(),
        nonce_sha256: Vec::new(),
    };
    while client.order_done(report.clone()).await.is_err() {
        tokio::time::sleep(POLL).await;
    }
    // Nobody may listen.
    done.send((order.machine_uuid, action)).ok();
}
