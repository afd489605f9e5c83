//! A joined agent: its identity, its session, its clients.

use std::sync::{Arc, OnceLock};

use base_telemetry::traces::Spans;
use parking_lot::Mutex;
use proto_identity::{Credential, Roots, SpiffeId, tls};
use proto_link::{ALPN, CallerKind, Keepalive, MeshClient, MeshClientConfig, SessionState, Socket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cache::LastGood;
use crate::desired::Fenced;
use crate::error::KitError;
use crate::metrics::Steps;
use crate::renew::{self, Renewal};
use crate::state_dir::{StateDir, StoredSession};

/// Who this agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The whole identity.
    pub spiffe: SpiffeId,
    /// The partition; empty for machines.
    pub partition: String,
    /// Agent id (of a core agent the switch's id) or machine UUID.
    pub id: String,
}

impl From<&SpiffeId> for AgentIdentity {
    fn from(spiffe: &SpiffeId) -> Self {
        Self {
            spiffe: spiffe.clone(),
            partition: spiffe.partition().unwrap_or_default().to_owned(),
            id: spiffe.id(),
        }
    }
}

/// A handle on the agent's session. Cheap to clone; the last clone's drop ends it.
#[derive(Clone, Debug)]
pub struct Agent {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    identity: AgentIdentity,
    mesh: MeshClient,
    credential: watch::Receiver<Credential>,
    dir: Option<StateDir>,
    steps: Steps,
    spans: OnceLock<Spans>,
    offline: bool,
    /// Ends with the last handle.
    tasks: Mutex<JoinSet<()>>,
}

impl Agent {
    pub(crate) fn new(
        credential: Credential,
        control: Vec<String>,
        ticket_id: String,
        dir: Option<StateDir>,
        socket: Option<&Socket>,
    ) -> Result<Self, KitError> {
        let config = mesh_config(&credential, &control)?;
        let mesh = match socket {
            Some(socket) => MeshClient::on(config, socket),
            None => MeshClient::new(config),
        };
        let mesh = mesh.map_err(KitError::Link)?;
        let (current, credential) = watch::channel(credential);
        let renewal = Renewal {
            mesh: mesh.clone(),
            current,
            control,
            ticket_id,
            dir: dir.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(renew::run(renewal));
        Self::of(mesh, credential, dir, tasks, false)
    }

    /// An agent that goes by its last-good state and dials nobody.
    pub(crate) fn offline(credential: Credential, dir: StateDir) -> Result<Self, KitError> {
        let mesh = MeshClient::offline(mesh_config(&credential, &[])?).map_err(KitError::Link)?;
        let (_, credential) = watch::channel(credential);
        Self::of(mesh, credential, Some(dir), JoinSet::new(), true)
    }

    fn of(
        mesh: MeshClient,
        credential: watch::Receiver<Credential>,
        dir: Option<StateDir>,
        tasks: JoinSet<()>,
        offline: bool,
    ) -> Result<Self, KitError> {
        let identity = AgentIdentity::from(&credential.borrow().identity()?.id);
        Ok(Self {
            inner: Arc::new(Inner {
                identity,
                mesh,
                credential,
                dir,
                steps: Steps::default(),
                spans: OnceLock::new(),
                offline,
                tasks: Mutex::new(tasks),
            }),
        })
    }

    /// An agent without a state directory: hammer, whose key lives in memory.
    pub fn from_credential(credential: Credential, control: Vec<String>) -> Result<Self, KitError> {
        Self::new(credential, control, String::new(), None, None)
    }

    /// The same through a socket that many agents of one process share: one of its own costs
    /// megabytes.
    pub fn from_credential_on(
        credential: Credential,
        control: Vec<String>,
        socket: &Socket,
    ) -> Result<Self, KitError> {
        Self::new(credential, control, String::new(), None, Some(socket))
    }

    /// An agent whose state directory was filled before, such as an installed machine's. The
    /// stored addresses are used when `control` is empty.
    pub fn resume(dir: StateDir, control: Vec<String>) -> Result<Self, KitError> {
        let StoredSession {
            credential,
            control: stored,
            ticket_id,
        } = dir.session()?.ok_or(KitError::NotJoined)?;
        let control = if control.is_empty() { stored } else { control };
        if control.is_empty() {
            return Err(KitError::NoControl);
        }
        Self::new(credential, control, ticket_id, Some(dir), None)
    }

    /// Who this agent is.
    pub fn identity(&self) -> &AgentIdentity {
        &self.inner.identity
    }

    /// A client of one of the mesh's services. Its calls wait for a session up to their
    /// deadline, then end with `Unavailable`.
    pub fn client<C: From<MeshClient>>(&self) -> C {
        self.inner.mesh.clone().into()
    }

    /// Follows whether there is a session.
    pub fn session(&self) -> watch::Receiver<SessionState> {
        self.inner.mesh.state()
    }

    /// Key and certificate of now.
    pub fn credential(&self) -> Credential {
        self.inner.credential.borrow().clone()
    }

    /// Where what the agent does is counted.
    pub fn steps(&self) -> Steps {
        self.inner.steps.clone()
    }

    /// Where spans of what the agent does go; nowhere without
    /// [`AgentArgs::send_spans`](crate::AgentArgs::send_spans).
    pub fn spans(&self) -> Spans {
        self.inner.spans.get().cloned().unwrap_or_default()
    }

    /// Sends spans there from now on; the first collector stays.
    pub(crate) fn set_spans(&self, spans: Spans) {
        self.inner.spans.get_or_init(|| spans);
    }

    /// A cache in the state directory; `None` without one.
    pub fn last_good(&self, name: &str) -> Option<LastGood> {
        self.inner.dir.as_ref().map(|dir| self.cache(dir, name))
    }

    /// Refuses to work without control when there is nothing to go by under `name`.
    ///
    /// # Errors
    /// There is no last-good state, or it is not what control told this agent last.
    pub fn require_last_good<M: Fenced>(&self, name: &str) -> Result<(), KitError> {
        let Some(dir) = self.inner.dir.as_ref().filter(|_| self.inner.offline) else {
            return Ok(());
        };
        let kept = M::load(&self.cache(dir, name)).map_err(|e| KitError::Kept(Box::new(e)))?;
        let path = || dir.path().to_owned();
        kept.map(drop)
            .ok_or_else(|| KitError::NothingKept { path: path() })
    }

    /// Whether it works without control: it dials nobody, and no call reaches anybody.
    pub fn is_offline(&self) -> bool {
        self.inner.offline
    }

    fn cache(&self, dir: &StateDir, name: &str) -> LastGood {
        let own = self.inner.identity.spiffe.clone();
        LastGood::new(dir.clone(), name, own, self.inner.credential.clone())
    }

    /// Ends the session and tells control.
    pub async fn close(&self) {
        self.inner.tasks.lock().abort_all();
        self.inner.mesh.close().await;
    }
}

fn mesh_config(credential: &Credential, control: &[String]) -> Result<MeshClientConfig, KitError> {
    let roots = Roots::Certificates(credential.roots.clone());
    let tls = tls::client_config(roots, Some(credential), ALPN)?;
    Ok(MeshClientConfig {
        keepalive: keepalive(credential.identity()?.id.caller_kind()),
        ..MeshClientConfig::new(control.to_vec(), tls)
    })
}

/// A machine that is not installed waits most of the time, and for people.
fn keepalive(kind: CallerKind) -> Keepalive {
    match kind {
        CallerKind::Machine => Keepalive::Patient,
        _ => Keepalive::Prompt,
    }
}
