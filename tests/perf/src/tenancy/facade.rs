//! The product beside Ironic: `metalmeshd` that serves Ironic's API, over a directory whose
//! machines are available nodes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use http::HeaderValue;
use uuid::Uuid;

use crate::api::http::Client;
use crate::api::rest::{RESOURCE_CLASS, RestApi};
use crate::api::{ours, seed};
use crate::callers::CalledSystem as _;
use crate::cluster::{POLL, free_ports};
use crate::process::Process;

/// How long the start may take before the bench gives up.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// One node that serves.
#[derive(Debug)]
pub(super) struct Facade {
    process: Process,
    rest: RestApi,
}

impl Facade {
    /// Fills a directory by the product's own commands, then starts the product on it.
    pub(super) async fn start(program: &Path, dir: &Path, nodes: u32) -> Result<Self> {
        std::fs::create_dir(dir)?;
        ours::fill(dir, nodes, 0, Some(RESOURCE_CLASS)).await?;
        let [admin, ..] = seed::tokens(dir)?;
        let mut token = HeaderValue::try_from(admin)?;
        token.set_sensitive(true);
        let [api, mesh, rest] = free_ports(3)?[..] else {
            bail!("no ports");
        };
        let address = SocketAddr::from(([127, 0, 0, 1], rest));
        let configuration = dir.with_extension("toml");
        let section = format!("[ironic]\nlisten = \"{address}\"\n");
        std::fs::write(&configuration, section)?;
        let arguments = [
            program.display().to_string(),
            format!("--config={}", configuration.display()),
            format!("--data-dir={}", dir.display()),
            format!("--api-listen=127.0.0.1:{api}"),
            format!("--mesh-listen=127.0.0.1:{mesh}"),
        ];
        let mut facade = Self {
            process: Process::start(&arguments, &dir.with_extension("log"))?,
            rest: RestApi {
                address,
                nodes,
                id_of: |number| Uuid::from_u128(number.into()),
                driver: "metalmesh",
                token: Some(token),
            },
        };
        facade.wait().await?;
        Ok(facade)
    }

    async fn wait(&mut self) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        let mut client = Client::new(self.rest.address);
        while let Err(error) = self.rest.warm(&mut client).await {
            self.process.check()?;
            ensure!(
                Instant::now() < until,
                "metalmeshd does not serve in time: {error:#}"
            );
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    pub(super) fn rest(&self) -> &RestApi {
        &self.rest
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }
}
