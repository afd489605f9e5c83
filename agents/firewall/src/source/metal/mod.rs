//! The source `metal`: control of this site, over the mesh.
//!
//! The agent speaks with the identity of the installed system, which control made for this machine,
//! its project and its allocation. It follows the desired state of the firewall, and reports which
//! revisions are in the kernel, which objects were refused, how far routes keep, its version and the
//! phase of self-update, and the counters. It compares rules that control asks about, and applies
//! none of those. What control sent last is kept with control's signature, and counts until control
//! answers.
//!
//! The identity is that of `metalmesh-hammer phone-home`, which alone renews its certificate: this
//! source reads each new one from the same directory.

mod candidates;
mod objects;
mod reports;
mod statistics;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_kit::{Agent, KitError, SessionState, StateDir, run_desired};
use agents_update::running_version;
use base_runtime::Chain;
use proto_identity::Subject;
use proto_mesh::{FirewallDesired, FirewallDesiredRequest, FirewallReport, FirewallServiceClient};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tracing::{info, warn};

use candidates::answer_candidates;
pub use objects::{ContentError, objects};
use reports::Reports;
use statistics::send_statistics;

use super::SourceLink;
use crate::config::MetalSource;

/// Directory where the installer put the identity of the system.
pub const IDENTITY_DIR: &str = "/var/lib/metalmesh";
/// Pause before the identity is looked for again.
const IDENTITY_RETRY: Duration = Duration::from_secs(30);
/// Pause before a report that control did not take is sent again.
const REPORT_RETRY: Duration = Duration::from_secs(5);

/// Where the source finds control, and which firewall it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetalSettings {
    /// Directory with the identity of the installed system.
    pub identity_dir: PathBuf,
    /// Project that the identity must be of. `None` takes the identity's.
    pub project: Option<String>,
}

impl MetalSettings {
    pub(super) fn of(source: &MetalSource) -> Self {
        let own = source.identity_dir.clone();
        Self {
            identity_dir: own.unwrap_or_else(|| PathBuf::from(IDENTITY_DIR)),
            project: source.project_id.clone(),
        }
    }
}

/// Why the source has no session with control.
#[derive(Debug, thiserror::Error)]
enum MetalError {
    #[error("{}: no identity to ask control with", .path.display())]
    Identity { path: PathBuf, source: KitError },
    #[error(
        "the identity {identity} is not that of an installed machine of a project; install the \
         firewall by control"
    )]
    Kind { identity: String },
    #[error(
        "the identity is of project {own}, and sources.metal.projectID is {wanted}; correct it, or \
         remove it"
    )]
    Project { own: String, wanted: String },
}

/// Follows control until the source is stopped.
pub async fn run_metal(settings: MetalSettings, link: SourceLink) {
    let agent = loop {
        match open(&settings) {
            Ok(agent) => break agent,
            Err(error) => link.fail(Chain(&error).to_string()),
        }
        tokio::select! {
            () = sleep(IDENTITY_RETRY) => {}
            () = link.stop().cancelled() => return,
        }
    };
    info!(identity = %agent.identity().spiffe, "asking control for rules");
    let (sender, receiver) = mpsc::channel(1);
    let (report, newest_report) = watch::channel(None);
    let client: FirewallServiceClient = agent.client();
    let open = || {
        client.desired(FirewallDesiredRequest {
            agent_version: running_version().to_owned(),
        })
    };
    let on = |desired: FirewallDesired, _origin| {
        let sender = sender.clone();
        // The receiver is gone only when the source is stopped.
        async move { drop(sender.send(desired).await) }
    };
    let stop = link.stop().clone();
    let (counters, questions) = (link.statistics(), link.candidates());
    tokio::select! {
        () = run_desired(&agent, open, agent.last_good("firewall"), on, stop) => {}
        () = deliver(&agent, link, receiver, report) => {}
        () = send_reports(client.clone(), newest_report) => {}
        () = send_statistics(client.clone(), counters) => {}
        () = answer_candidates(client.clone(), questions) => {}
    }
    agent.close().await;
}

fn open(settings: &MetalSettings) -> Result<Agent, MetalError> {
    agents_kit::install_crypto_provider();
    let follow = |path: &Path| Agent::follow(StateDir::open(path)?);
    let agent = follow(&settings.identity_dir).map_err(|source| MetalError::Identity {
        path: settings.identity_dir.clone(),
        source,
    })?;
    let own = match agent.identity().spiffe.subject() {
        Subject::ProjectMachine { project, .. } => project.clone(),
        _ => {
            let identity = agent.identity().spiffe.to_string();
            return Err(MetalError::Kind { identity });
        }
    };
    match &settings.project {
        Some(wanted) if *wanted != own => Err(MetalError::Project {
            own,
            wanted: wanted.clone(),
        }),
        _ => Ok(agent),
    }
}

/// Passes desired states on, and says what becomes of them.
async fn deliver(
    agent: &Agent,
    link: SourceLink,
    mut desired: mpsc::Receiver<FirewallDesired>,
    report: watch::Sender<Option<FirewallReport>>,
) {
    let mut session = agent.session();
    let mut applied = link.applied();
    let mut routes = link.routes();
    let mut updates = link.updates();
    let mut reports = Reports::default();
    loop {
        tokio::select! {
            state = desired.recv() => {
                let Some(state) = state else { return };
                if let Some(done) = pass_on(&state, &link, &mut reports) {
                    report.send_replace(Some(done));
                }
            }
            changed = applied.changed() => {
                // The sender is gone only when the source is stopped.
                if changed.is_err() {
                    return;
                }
                let done = applied.borrow_and_update().clone();
                if let Some(done) = done.and_then(|done| reports.take(&done)) {
                    report.send_replace(Some(done));
                }
            }
            changed = routes.changed() => {
                if changed.is_err() {
                    return;
                }
                let observed = routes.borrow_and_update().clone();
                if let Some(done) = reports.observe(observed) {
                    report.send_replace(Some(done));
                }
            }
            changed = updates.changed() => {
                if changed.is_err() {
                    return;
                }
                let status = updates.borrow_and_update().clone();
                if let Some(done) = status.and_then(|status| reports.observe_update(&status)) {
                    report.send_replace(Some(done));
                }
            }
            changed = session.changed() => {
                if changed.is_err() {
                    return;
                }
                if let SessionState::Down(Some(error)) = &*session.borrow_and_update() {
                    link.fail(format!("control: {error}"));
                }
            }
        }
    }
}

/// Sends the newest report until control takes it. Rules do not wait for it.
async fn send_reports(
    client: FirewallServiceClient,
    mut newest: watch::Receiver<Option<FirewallReport>>,
) {
    while newest.changed().await.is_ok() {
        loop {
            let report = newest.borrow_and_update().clone();
            let Some(report) = report else { break };
            let Err(error) = client.report(report).await else {
                break;
            };
            warn!(%error, "control did not take the report; repeating it");
            sleep(REPORT_RETRY).await;
        }
    }
}

/// Delivers a desired state to the agent. Returns a report if there is nothing to wait for.
fn pass_on(
    state: &FirewallDesired,
    link: &SourceLink,
    reports: &mut Reports,
) -> Option<FirewallReport> {
    match objects(state) {
        Ok(objects) => {
            let report = reports.deliver(state, objects.clone());
            link.deliver(objects);
            report
        }
        Err(error) => {
            let reason = Chain(&error).to_string();
            link.fail(reason.clone());
            Some(reports.refuse(reason))
        }
    }
}
