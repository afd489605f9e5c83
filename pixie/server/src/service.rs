//! All tasks of one pixie, started together and stopped together.

use std::io;
use std::net::SocketAddrV4;
use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::control::{Control, Desired};
use crate::dhcp::Dhcp;
use crate::dhcp_relay::DhcpRelay;
use crate::http::Http;
use crate::installer::{FetchSetupError, Fetcher, run_installer};
use crate::probe::SelfProbe;
use crate::ra::Advertiser;
use crate::report::run_reports;
use crate::spool::run_spool;
use crate::state::Shared;
use crate::tftp::Tftp;

/// The reason why pixie did not start or has ended.
#[derive(Debug, thiserror::Error)]
pub enum PixieError {
    #[error("cannot use the state directory")]
    State(#[source] io::Error),
    #[error("cannot fetch installers")]
    Fetch(#[source] FetchSetupError),
    #[error("cannot open {what} on {interface}")]
    Open {
        what: &'static str,
        interface: String,
        #[source]
        source: io::Error,
    },
    #[error("a task failed")]
    Task(#[source] io::Error),
}

/// A pixie with all its sockets open.
#[derive(Debug)]
pub struct Pixie {
    shared: Arc<Shared>,
    probe: SelfProbe,
    tasks: JoinSet<io::Result<()>>,
    stop: CancellationToken,
}

/// Replaces the desired state of a running pixie. Cheap to clone (`Arc`).
#[derive(Debug, Clone)]
pub struct DesiredSink(Arc<Shared>);

impl DesiredSink {
    /// Replaces the desired state. `fresh` is `true` if it came from control now, `false` if it was
    /// read from disk.
    pub fn set(&self, desired: Desired, fresh: bool) {
        if fresh {
            self.0.control_answered();
        }
        self.0.set_desired(desired);
    }
}

impl Pixie {
    /// Opens all sockets and starts the tasks in the background.
    ///
    /// # Errors
    /// [`PixieError`] if the state directory, the certificate authorities or a socket cannot be
    /// used.
    pub async fn spawn(
        config: Config,
        control: Arc<dyn Control>,
        state_dir: &Path,
        stop: CancellationToken,
    ) -> Result<Self, PixieError> {
        let fetcher = Fetcher::new(config.ca_file.as_deref(), &config.fetch);
        let fetcher = fetcher.map_err(PixieError::Fetch)?;
        let shared = Arc::new(Shared::open(config, control, state_dir).map_err(PixieError::State)?);
        let mut tasks = JoinSet::new();
        for (network, config) in shared.config.networks.iter().enumerate() {
            let open = |what: &'static str| {
                let interface = config.interface.clone();
                move |source| PixieError::Open {
                    what,
                    interface,
                    source,
                }
            };
            let dhcp = Dhcp::bind(Arc::clone(&shared), network).map_err(open("DHCP"))?;
            tasks.spawn(dhcp.run(stop.clone()));
            let address = config.network.address;
            let port = shared.config.ports.tftp;
            let tftp = Tftp::bind(SocketAddrV4::new(address, port), &shared.config.assets)
                .await
                .map_err(open("TFTP"))?;
            tasks.spawn(tftp.run(stop.clone()));
            let http = Http::bind(Arc::clone(&shared), network)
                .await
                .map_err(open("HTTP"))?;
            tasks.spawn(http.run(stop.clone()));
            if config.router_advertisements {
                match Advertiser::bind(&config.interface) {
                    Ok(advertiser) => {
                        tasks.spawn(advertiser.run(stop.clone()));
                    }
                    // IPv4 boot works without advertisements, only slower.
                    Err(error) => tracing::warn!(
                        interface = config.interface, %error, "no router advertisements"
                    ),
                }
            }
        }
        if let Some(relay) = &shared.config.relay {
            let bound = DhcpRelay::bind(Arc::clone(&shared), relay);
            let bound = bound.map_err(|source| PixieError::Open {
                what: "DHCP for relays",
                interface: relay.interface.clone(),
                source,
            })?;
            tasks.spawn(bound.run(stop.clone()));
        }
        let probe = spawn_background(&shared, fetcher, &mut tasks, &stop);
        Ok(Self {
            shared,
            probe,
            tasks,
            stop,
        })
    }

    /// The handle that replaces the desired state.
    #[must_use]
    pub fn desired_sink(&self) -> DesiredSink {
        DesiredSink(Arc::clone(&self.shared))
    }

    /// The probe of its own sockets.
    #[must_use]
    pub fn probe(&self) -> SelfProbe {
        self.probe.clone()
    }

    /// Waits until all tasks have ended.
    ///
    /// # Errors
    /// [`PixieError::Task`] with the first task that failed.
    pub async fn run(mut self) -> Result<(), PixieError> {
        let mut result = Ok(());
        while let Some(done) = self.tasks.join_next().await {
            let done = done.map_err(io::Error::other).and_then(|done| done);
            if let Err(error) = done {
                // One failed task stops all: a pixie with DHCP but without TFTP would send machines
                // into a boot that cannot succeed. The supervisor starts the process again.
                result = result.and(Err(PixieError::Task(error)));
                self.stop.cancel();
            }
        }
        result
    }
}

/// Starts the tasks that serve no machine: spool, reports, installer downloads, the probe of its own
/// sockets.
fn spawn_background(
    shared: &Arc<Shared>,
    fetcher: Fetcher,
    tasks: &mut JoinSet<io::Result<()>>,
    stop: &CancellationToken,
) -> SelfProbe {
    let probe = SelfProbe::default();
    let probing = probe.clone().run(Arc::clone(shared), stop.clone());
    let spool = run_spool(Arc::clone(shared), stop.clone());
    let reports = run_reports(Arc::clone(shared), stop.clone());
    let installer = run_installer(Arc::clone(shared), fetcher, stop.clone());
    tasks.spawn(async move {
        spool.await;
        Ok(())
    });
    tasks.spawn(async move {
        reports.await;
        Ok(())
    });
    tasks.spawn(async move {
        installer.await;
        Ok(())
    });
    tasks.spawn(async move {
        probing.await;
        Ok(())
    });
    probe
}
