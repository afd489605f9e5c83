//! Ironic as its documentation sets it up: the API under uWSGI, a conductor, MariaDB.
//!
//! Whatever costs Ironic and is not what is measured is off: no authentication, no power sync, no
//! cleaning, no ports, no sensors; the fake hardware answers at once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::http::Client;
use super::mariadb::{MariaDb, run};
use super::rest::RestApi;
use crate::cluster::{POLL, free_ports};
use crate::process::Process;

/// The API's processes, one a core of the smallest machine this is for, and threads of each.
const API_PROCESSES: u32 = 2;
const API_THREADS: u32 = 16;
/// How long it may take until the API answers and knows a conductor.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a node may take to its next state.
const STATE_TIMEOUT: Duration = Duration::from_secs(60);
/// The driver that answers at once.
const DRIVER: &str = "fake-hardware";

/// Where its parts are.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    /// Python environment with Ironic and uWSGI.
    pub(crate) venv: PathBuf,
    /// Debian's MariaDB, unpacked.
    pub(crate) mariadb: PathBuf,
}

/// A running Ironic.
#[derive(Debug)]
pub(crate) struct Ironic {
    api: Process,
    conductor: Process,
    database: MariaDb,
    rest: RestApi,
}

impl Ironic {
    /// Starts all of it and loads the nodes.
    pub(crate) async fn start(parts: &Parts, dir: &Path, nodes: u32) -> Result<Self> {
        std::fs::create_dir(dir)?;
        let database = MariaDb::start(&parts.mariadb, dir).await?;
        let [api, rpc] = free_ports(2)?[..] else {
            bail!("no ports");
        };
        let configuration = dir.join("ironic.conf");
        let text = configuration_of(dir, &database.url(), rpc);
        std::fs::write(&configuration, text)?;
        let program = |name: &str| parts.venv.join("bin").join(name).display().to_string();
        let file = format!("--config-file={}", configuration.display());
        run(Command::new(program("ironic-dbsync")).args([&file, "create_schema"]))
            .context("ironic-dbsync")?;
        let conductor = [program("ironic-conductor"), file.clone()];
        let conductor = Process::start(&conductor, &dir.join("conductor.log"))?;
        let address = SocketAddr::from(([127, 0, 0, 1], api));
        let uwsgi = [
            program("uwsgi"),
            format!("--http={address}"),
            "--http-keepalive=300".into(),
            "--module=ironic.wsgi.api:application".into(),
            format!("--pyargv={file}"),
            format!("--virtualenv={}", parts.venv.display()),
            "--master".into(),
            "--no-orphans".into(),
            "--die-on-term".into(),
            "--need-app".into(),
            "--lazy-apps".into(),
            "--disable-logging".into(),
            format!("--processes={API_PROCESSES}"),
            format!("--threads={API_THREADS}"),
            "--listen=100".into(),
            "--buffer-size=65535".into(),
        ];
        let mut ironic = Self {
            api: Process::start(&uwsgi, &dir.join("api.log"))?,
            conductor,
            database,
            rest: RestApi {
                address,
                nodes,
                id_of: node,
                driver: DRIVER,
                token: None,
            },
        };
        ironic.wait().await?;
        ironic.load().await?;
        Ok(ironic)
    }

    /// Until the conductor has said what it drives.
    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        let mut client = Client::new(self.rest.address);
        let drivers = self.rest.request(Method::GET, "/v1/drivers", &Value::Null);
        loop {
            let answer = client.json(&drivers).await;
            let names = answer.as_ref().map(Value::to_string).unwrap_or_default();
            if names.contains(DRIVER) {
                return Ok(());
            }
            self.api.check()?;
            self.conductor.check()?;
            ensure!(Instant::now() < until, "Ironic does not serve: {answer:?}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// The first node goes the API's way until it is on offer; the others are its rows again.
    async fn load(&self) -> Result<()> {
        let mut client = Client::new(self.rest.address);
        client.call(&self.rest.create_as("node-1", node(1))).await?;
        let path = format!("/v1/nodes/{}", node(1));
        let steps = [
            ("provision", "manage", "provision_state", "manageable"),
            ("provision", "provide", "provision_state", "available"),
            ("power", "power off", "power_state", "power off"),
        ];
        for (what, target, field, wanted) in steps {
            let order = json!({"target": target});
            let states = format!("{path}/states/{what}");
            client
                .call(&self.rest.request(Method::PUT, &states, &order))
                .await?;
            let until = Instant::now() + STATE_TIMEOUT;
            let look = self.rest.request(Method::GET, &path, &Value::Null);
            loop {
                let node = client.json(&look).await?;
                if node[field] == wanted && node["reservation"].is_null() {
                    break;
                }
                ensure!(
                    Instant::now() < until,
                    "the first node is not {wanted}: {node}"
                );
                tokio::time::sleep(POLL).await;
            }
        }
        if self.rest.nodes > 1 {
            self.database.query(&clones(self.rest.nodes))?;
        }
        let count = self.database.query("select count(*) from nodes")?;
        ensure!(
            count.trim() == self.rest.nodes.to_string(),
            "{} nodes were loaded",
            count.trim()
        );
        Ok(())
    }

    pub(crate) fn rest(&self) -> &RestApi {
        &self.rest
    }

    /// Every process that it is made of, without children that come and go.
    pub(crate) fn pids(&self) -> [u32; 3] {
        [self.api.pid(), self.conductor.pid(), self.database.pid()]
    }
}

/// Copies of node 1, each with an id and a name of its own.
fn clones(nodes: u32) -> String {
    format!(
        "set @columns = (select group_concat(concat('`', column_name, '`')) \
         from information_schema.columns where table_schema = database() and table_name = 'nodes' \
         and column_name not in ('id', 'uuid', 'name')); \
         set @insert = concat('insert into nodes (uuid, name, ', @columns, ') select \
         concat(\"00000000-0000-4000-8000-\", lpad(hex(seq), 12, \"0\")), concat(\"node-\", seq), ', \
         @columns, ' from nodes join seq_2_to_{nodes} where name = \"node-1\"'); \
         prepare clones from @insert; execute clones;"
    )
}

/// Id of node `number`.
fn node(number: u32) -> Uuid {
    Uuid::from_u64_pair(0x4000, 0x8000_0000_0000_0000 | u64::from(number))
}

fn configuration_of(dir: &Path, database: &str, rpc: u16) -> String {
    let dir = dir.display();
    format!(
        "[DEFAULT]
auth_strategy = noauth
rpc_transport = json-rpc
host = 127.0.0.1
my_ip = 127.0.0.1
state_path = {dir}/state
tempdir = {dir}
enabled_hardware_types = {DRIVER}
enabled_boot_interfaces = fake
enabled_deploy_interfaces = fake
enabled_management_interfaces = fake
enabled_power_interfaces = fake
enabled_console_interfaces = no-console
enabled_vendor_interfaces = fake,no-vendor
enabled_network_interfaces = noop
default_network_interface = noop
default_deploy_interface = fake
default_boot_interface = fake
[conductor]
automated_clean = False
cache_clean_up_interval = 0
sync_power_state_interval = 0
[database]
connection = {database}
[json_rpc]
auth_strategy = noauth
host_ip = 127.0.0.1
port = {rpc}
[deploy]
iso_master_path =
[pxe]
instance_master_path =
[dhcp]
dhcp_provider = none
[oslo_concurrency]
lock_path = {dir}/lock
"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn nodes_have_the_ids_that_the_database_makes() {
        let node = super::node(0x1388).to_string();
        assert_eq!(node, "00000000-0000-4000-8000-000000001388");
    }
}
