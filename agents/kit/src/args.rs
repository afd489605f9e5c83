//! The command line that all agents share.

use std::net::SocketAddr;
use std::path::PathBuf;

use base_runtime::logging::LogFormat;
use base_telemetry::metrics::Collector;
use proto_identity::ticket::JoinTicket;
use proto_identity::{AgentRole, Roots, Subject};
use strum::IntoStaticStr;
use tracing::{info, warn};

use crate::agent::Agent;
use crate::enrol::{self, Claim};
use crate::error::KitError;
use crate::metrics::{self, MetricsListener};
use crate::state_dir::{self, StateDir, StoredSession};
use crate::tpm::TPM_PATH;
use crate::traces::{self, Traced};

/// The kind of agent that a binary is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase", prefix = "metalmesh-")]
pub enum AgentKind {
    /// metalmesh-core
    Core,
    /// metalmesh-bmc
    Bmc,
    /// metalmesh-pixie
    Pixie,
}

impl AgentKind {
    fn program(self) -> &'static str {
        self.into()
    }

    fn role(self) -> AgentRole {
        match self {
            Self::Core => AgentRole::Core,
            Self::Bmc => AgentRole::Bmc,
            Self::Pixie => AgentRole::Pixie,
        }
    }
}

/// Arguments by which an agent finds and joins control.
#[derive(Clone, Debug, clap::Args)]
pub struct AgentArgs {
    /// A control node, host:port; repeat it for each node. Without it the addresses of the
    /// ticket, later of the last session, are used.
    #[arg(
        long,
        value_name = "HOST:PORT",
        env = "METALMESH_CONTROL",
        value_delimiter = ','
    )]
    pub control: Vec<String>,
    /// Directory for key, certificate and last-good state; mode 0700.
    #[arg(long, value_name = "DIR", env = "METALMESH_STATE_DIR")]
    pub state_dir: PathBuf,
    /// One-time join ticket from `metalmesh join create`; needed at the first start only.
    #[arg(long, value_name = "FILE", env = "METALMESH_TICKET_FILE")]
    pub ticket_file: Option<PathBuf>,
    /// The host's TPM 2.0, which answers for tickets that are bound to it: its device, or the
    /// socket of a software TPM.
    #[arg(long, value_name = "PATH", env = "METALMESH_TPM", default_value = TPM_PATH)]
    pub tpm: PathBuf,
    /// Work without control: go by the last state that it gave, and dial nobody. Only an agent
    /// that has joined before can do that.
    #[arg(long, env = "METALMESH_OFFLINE")]
    pub offline: bool,
    /// Format of the log on standard error.
    #[arg(long, value_enum, default_value_t)]
    pub log: LogFormat,
    /// Tell Prometheus how this agent does, at http://ADDRESS/metrics. There is no authentication:
    /// loopback, or a network of operators.
    #[arg(long, value_name = "ADDRESS", env = "METALMESH_METRICS")]
    pub metrics: Option<SocketAddr>,
    /// Send spans of what this agent does for traced calls to a collector of OpenTelemetry, by
    /// OTLP/HTTP: http://127.0.0.1:4318/v1/traces. For https:// the system's authorities count.
    #[arg(long, value_name = "URL", env = "METALMESH_OTLP")]
    pub otlp: Option<String>,
}

impl AgentArgs {
    /// Loads or generates the key, joins by ticket or resumes, and keeps a session from then on.
    ///
    /// An agent that has joined starts at once, even if control does not answer. Joining waits for
    /// control without a limit, but a refused ticket is an error. With `offline` the agent never
    /// dials control; see [`Agent::require_last_good`].
    pub async fn start(&self, kind: AgentKind) -> Result<Agent, KitError> {
        let dir = StateDir::open(&self.state_dir)?;
        let stored = dir.session()?;
        if self.offline {
            return start_offline(kind, dir, stored);
        }
        let ticket = self.read_ticket()?;
        let session = match (stored, ticket) {
            (Some(stored), Some(ticket)) if stored.ticket_id != ticket.id => {
                // A ticket other than the redeemed one: an operator wants this agent to join again.
                match self.join(&dir, &ticket).await {
                    Ok(session) => session,
                    // A mistake with the ticket must not stop an agent that has a valid identity.
                    Err(KitError::Refused(e)) => {
                        warn!(error = %e, "new ticket refused; keeping the old identity");
                        stored
                    }
                    Err(e) => return Err(e),
                }
            }
            // The ticket of the first start may still be on the command line of every later one.
            (Some(stored), _) => stored,
            (None, Some(ticket)) => self.join(&dir, &ticket).await?,
            (None, None) => return Err(KitError::NotJoined),
        };
        check_kind(kind, &session)?;
        let control = self.addresses(&session.control)?;
        Agent::new(
            session.credential,
            control,
            session.ticket_id,
            Some(dir),
            None,
        )
    }

    /// Addresses of control, host:port: those of `--control`, else of the last session, else of the
    /// ticket. Empty if there are none, without which an agent does not start.
    ///
    /// # Errors
    /// The state directory or the ticket cannot be read.
    pub fn control_addresses(&self) -> Result<Vec<String>, KitError> {
        if !self.control.is_empty() {
            return Ok(self.control.clone());
        }
        if let Some(stored) = StateDir::open(&self.state_dir)?.read_session()? {
            return Ok(stored.control);
        }
        let ticket = self.read_ticket()?;
        Ok(ticket.map_or_else(Vec::new, |ticket| ticket.control.clone()))
    }

    /// Serves the agent's metrics, with those of `more`, until the returned listener is dropped. `None` if
    /// `--metrics` was not given.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn serve_metrics(
        &self,
        agent: &Agent,
        kind: AgentKind,
        more: Option<Box<dyn Collector>>,
    ) -> Result<Option<MetricsListener>, KitError> {
        match self.metrics {
            Some(listen) => metrics::serve(listen, agent, kind.program(), more)
                .await
                .map(Some),
            None => Ok(None),
        }
    }

    /// Sends the agent's spans, if `--otlp` was given, until the returned value is ended. Call it
    /// before the agent's work, which takes [`Agent::spans`] once.
    ///
    /// # Errors
    /// When the collector's URL cannot be used.
    pub fn send_spans(&self, agent: &Agent, kind: AgentKind) -> Result<Traced, KitError> {
        let Some(url) = &self.otlp else {
            return Ok(Traced::default());
        };
        let (spans, traced) = traces::send(url, agent, kind.program())?;
        agent.set_spans(spans);
        Ok(traced)
    }

    fn read_ticket(&self) -> Result<Option<JoinTicket>, KitError> {
        let Some(path) = &self.ticket_file else {
            return Ok(None);
        };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                state_dir::refuse_exposed(path)?;
                Ok(Some(JoinTicket::parse(&text)?))
            }
            // Operators delete the ticket after the join; only the first start needs it.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(state_dir::file_error(path, e)),
        }
    }

    async fn join(&self, dir: &StateDir, ticket: &JoinTicket) -> Result<StoredSession, KitError> {
        let control = self.addresses(&ticket.control)?;
        let roots = Roots::Sha256(ticket.roots.clone());
        let claim = Claim {
            ticket_id: ticket.id.clone(),
            secret: ticket.secret.to_vec(),
            machine: None,
            nonce: None,
            tpm: ticket.tpm.then(|| self.tpm.clone()),
        };
        // The key is on disk and the same after a restart: control accepts a redeemed ticket again
        // only from the key that redeemed it, so a crash before `store` costs no ticket.
        let credential = enrol::join(&control, roots, &claim, dir.key()?, None).await?;
        let session = StoredSession {
            credential,
            control,
            ticket_id: ticket.id.clone(),
        };
        dir.store(&session)?;
        info!(ticket = %ticket.id, "joined");
        Ok(session)
    }

    fn addresses(&self, fallback: &[String]) -> Result<Vec<String>, KitError> {
        let list = if self.control.is_empty() {
            fallback
        } else {
            &self.control
        };
        if list.is_empty() {
            Err(KitError::NoControl)
        } else {
            Ok(list.to_vec())
        }
    }
}

fn start_offline(
    kind: AgentKind,
    dir: StateDir,
    stored: Option<StoredSession>,
) -> Result<Agent, KitError> {
    // The BMC agent only executes control's orders. Without control it would do nothing.
    if kind == AgentKind::Bmc {
        let kind = kind.role().as_str();
        return Err(KitError::OnlyOrders { kind });
    }
    let session = stored.ok_or(KitError::OfflineNotJoined)?;
    check_kind(kind, &session)?;
    info!("working without control, by the last state that it gave");
    Agent::offline(session.credential, dir)
}

fn check_kind(kind: AgentKind, session: &StoredSession) -> Result<(), KitError> {
    let identity = session.credential.identity()?;
    match identity.id.subject() {
        Subject::Agent { role, .. } if *role == kind.role() => Ok(()),
        _ => Err(KitError::WrongKind {
            got: identity.id.to_string(),
            want: kind.role().as_str(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_do_not_change() {
        let all = [AgentKind::Core, AgentKind::Bmc, AgentKind::Pixie];
        let names = ["metalmesh-core", "metalmesh-bmc", "metalmesh-pixie"];
        assert_eq!(all.map(AgentKind::program), names);
    }
}
