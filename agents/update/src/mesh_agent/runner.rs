use std::fs::File;
use std::path::Path;
use std::time::Duration;

use agents_kit::{Agent, SessionState, run_desired};
use anyhow::Result;
use base_telemetry::metrics::Collector;
use nix::fcntl::Flock;
use proto_mesh::{
    AgentRelease, UpdateDesired, UpdateDesiredRequest, UpdateReport, UpdateServiceClient,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::own_files::OwnFiles;
use super::program::MeshProgram;
use super::reports;
use crate::host::UpdateHost;
use crate::probe::ProbeJob;
use crate::sealed_dir::SealedDir;
use crate::settings::UpdateSettings;
use crate::update_collector::UpdateCollector;
use crate::updater::SelfUpdate;
use crate::wanted::WantedRelease;

/// Interval of decisions.
const TICK: Duration = Duration::from_secs(1);

/// Self-update of an agent that follows control.
#[derive(Debug)]
pub struct AgentUpdate {
    program: &'static MeshProgram,
    agent: Agent,
    files: OwnFiles,
    update: SelfUpdate,
    /// Held while the agent runs: one process tries programs of a state directory.
    _lock: Flock<File>,
}

/// The agent as self-update sees it.
#[derive(Debug)]
struct MeshView<'a> {
    program: &'a MeshProgram,
    files: &'a OwnFiles,
    release: Option<&'a AgentRelease>,
    is_healthy: bool,
}

impl AgentUpdate {
    /// Finds out which program runs. `None` means that nothing is replaced: the agent works without
    /// control, or another process has its state directory.
    ///
    /// # Errors
    /// The state directory cannot be used, or this program has no file.
    pub fn open(
        program: &'static MeshProgram,
        agent: &Agent,
        state_dir: &Path,
        config: &Path,
    ) -> Result<Option<Self>> {
        if agent.is_offline() {
            return Ok(None);
        }
        let state = SealedDir::open(state_dir)?;
        let Some(lock) = state.lock()? else {
            warn!("another process has the state directory: this one replaces no program");
            return Ok(None);
        };
        Ok(Some(Self {
            program,
            agent: agent.clone(),
            files: OwnFiles::new(program, config),
            update: SelfUpdate::open(program.updating(), &state)?,
            _lock: lock,
        }))
    }

    /// The metrics of self-update. `None` if nothing is replaced.
    #[must_use]
    pub fn metrics(update: Option<&Self>) -> Option<Box<dyn Collector>> {
        let status = update?.update.status();
        Some(Box::new(UpdateCollector {
            prefix: "metalmesh_agent",
            status,
        }))
    }

    /// Follows the release that control names, until `stop`. `ailment` has the reason why the agent does
    /// not do its work; `None` means that it does. Returns `true` if the agent has to end, so that
    /// another program takes its place.
    pub async fn run(
        mut self,
        ailment: impl Fn() -> Option<String>,
        stop: CancellationToken,
    ) -> bool {
        let (told, mut release) = watch::channel(None);
        let (newest, shown) = watch::channel(None);
        let client: UpdateServiceClient = self.agent.client();
        // They end with this function.
        let mut tasks = JoinSet::new();
        tasks.spawn(follow(self.agent.clone(), told, stop.clone()));
        tasks.spawn(reports::send(client, shown, stop.clone()));
        let session = self.agent.session();
        loop {
            let ailment = ailment();
            let is_up = matches!(*session.borrow(), SessionState::Up);
            let wanted: Option<AgentRelease> = release.borrow_and_update().clone();
            self.files.refresh();
            let view = MeshView {
                program: self.program,
                files: &self.files,
                release: wanted.as_ref(),
                is_healthy: is_up && ailment.is_none(),
            };
            let is_over = self.update.tick(&view);
            publish(
                &newest,
                reports::report(self.update.status().get(), ailment),
            );
            if is_over {
                return true;
            }
            tokio::select! {
                () = stop.cancelled() => return false,
                // Without a sender the stream has ended with `stop`.
                Ok(()) = release.changed() => {}
                () = sleep(TICK) => {}
            }
        }
    }
}

/// Shows a report if it has news.
fn publish(newest: &watch::Sender<Option<UpdateReport>>, report: UpdateReport) {
    newest.send_if_modified(|shown| {
        let is_news = shown.as_ref() != Some(&report);
        if is_news {
            *shown = Some(report);
        }
        is_news
    });
}

/// Follows what control wants.
async fn follow(agent: Agent, told: watch::Sender<Option<AgentRelease>>, stop: CancellationToken) {
    let client: UpdateServiceClient = agent.client();
    let open = || client.desired(UpdateDesiredRequest {});
    let on = |state: UpdateDesired, _origin| {
        told.send_replace(state.release);
        std::future::ready(())
    };
    run_desired(&agent, open, None, on, stop).await;
}

impl UpdateHost for MeshView<'_> {
    fn settings(&self) -> Option<UpdateSettings> {
        self.files.settings().cloned()
    }

    fn obstacle(&self) -> Option<&'static str> {
        match self.files.settings() {
            None => Some("configuration: the file is not valid; correct it, `check` says where"),
            Some(settings) if !settings.is_enabled => Some(
                "self_update: the configuration has no such section; add it to replace programs",
            ),
            Some(settings) if settings.keys.is_empty() => Some(
                "keys: no key of releases is trusted here; add one to the file that self_update.keys \
                 names",
            ),
            Some(_) => None,
        }
    }

    fn wanted(&self) -> Result<Option<WantedRelease>, String> {
        let Some(release) = self.release else {
            return Ok(None);
        };
        WantedRelease::parse(
            &self.program.updating().fields,
            Some(&release.version),
            Some(&release.url),
            Some(&release.head_digest),
        )
    }

    fn is_healthy(&self) -> bool {
        self.is_healthy
    }

    fn probe_job(&self) -> Option<ProbeJob> {
        self.files.text().map(|text| ProbeJob {
            text: text.clone(),
            // A configuration is valid as a whole, or not at all.
            refused: |_| 0,
        })
    }

    fn keep_before_update(&self) -> Result<(), String> {
        // The files of the agent are control's: each program reads them, or asks again.
        Ok(())
    }

    fn drop_before_update(&self) -> Result<(), String> {
        Ok(())
    }
}
