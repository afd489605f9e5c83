//! A joined agent: identity, session and clients.

use std::sync::{Arc, OnceLock};

use base_telemetry::traces::Spans;
use parking_lot::Mutex;
use proto_identity::{Credential, Roots, SpiffeId, tls};
use proto_link::{ALPN, CallerKind, Keepalive, MeshClient, MeshClientConfig, SessionState, Socket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cache::LastGood;
use crate::error::KitError;
use crate::fence::Fenced;
use crate::follow::CredentialFollower;
use crate::renew::{self, Renewal};
use crate::state_dir::{StateDir, StoredSession};
use crate::steps::Steps;

/// The agent's identity, from its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentIdentity {
    /// The whole identity.
    pub spiffe: SpiffeId,
    /// The partition. Empty for machines.
    pub partition: String,
    /// Agent id (a core agent's is the switch's id) or machine UUID.
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

/// A handle on the agent's session. Cheap to clone (`Arc`); the session ends when the last clone is
/// dropped.
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

    /// An agent that works by its last-good state and never dials.
    pub(crate) fn offline(credential: Credential, dir: StateDir) -> Result<Self, KitError> {
        let mesh = MeshClient::offline(mesh_config(&credential, &[])?).map_err(KitError::Link)?;
        // Without a sender: an offline agent never gets another certificate.
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

    /// An agent without a state directory: hammer, whose key is in memory only.
    pub fn from_credential(credential: Credential, control: Vec<String>) -> Result<Self, KitError> {
        Self::new(credential, control, String::new(), None, None)
    }

    /// Like [`Agent::from_credential`], through a socket that many agents of one process share. A
    /// socket of its own takes megabytes.
    pub fn from_credential_on(
        credential: Credential,
        control: Vec<String>,
        socket: &Socket,
    ) -> Result<Self, KitError> {
        Self::new(credential, control, String::new(), None, Some(socket))
    }

    /// An agent with a filled state directory, such as an installed machine's. Empty `control`
    /// means the stored addresses.
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

    /// An agent that shares a filled state directory with another process of the same identity,
    /// which renews the certificate. This one only reads it, and takes each new one: two that renew
    /// would replace each other's keys.
    pub fn follow(dir: StateDir) -> Result<Self, KitError> {
        let session = dir.read_session()?.ok_or(KitError::NotJoined)?;
        if session.control.is_empty() {
            return Err(KitError::NoControl);
        }
        let config = mesh_config(&session.credential, &session.control)?;
        let mesh = MeshClient::new(config).map_err(KitError::Link)?;
        let (current, credential) = watch::channel(session.credential);
        let follower = CredentialFollower {
            mesh: mesh.clone(),
            current,
            dir: dir.clone(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(follower.run());
        Self::of(mesh, credential, Some(dir), tasks, false)
    }

    /// The agent's identity.
    pub fn identity(&self) -> &AgentIdentity {
        &self.inner.identity
    }

    /// A client of one of the mesh's services. Its calls wait for a session up to their
    /// deadline, then end with `Unavailable`.
    pub fn client<C: From<MeshClient>>(&self) -> C {
        self.inner.mesh.clone().into()
    }

    /// The state of the session, to be watched.
    pub fn session(&self) -> watch::Receiver<SessionState> {
        self.inner.mesh.state()
    }

    /// The current key and certificate.
    pub fn credential(&self) -> Credential {
        self.inner.credential.borrow().clone()
    }

    /// The counters of the agent's steps.
    pub fn steps(&self) -> Steps {
        self.inner.steps.clone()
    }

    /// The sink of the agent's spans. It drops them unless
    /// [`AgentArgs::send_spans`](crate::AgentArgs::send_spans) was called before.
    pub fn spans(&self) -> Spans {
        self.inner.spans.get().cloned().unwrap_or_default()
    }

    /// Sends spans to `spans` from now on. Only the first call has an effect.
    pub(crate) fn set_spans(&self, spans: Spans) {
        self.inner.spans.get_or_init(|| spans);
    }

    /// A cache in the state directory. `None` if the agent has no such directory.
    pub fn last_good(&self, name: &str) -> Option<LastGood> {
        self.inner.dir.as_ref().map(|dir| self.cache(dir, name))
    }

    /// Checks that an offline agent has a last-good state under `name`. Always succeeds online.
    ///
    /// # Errors
    /// When there is no last-good state, or it is not the last one that control sent to this agent.
    pub fn require_last_good<M: Fenced>(&self, name: &str) -> Result<(), KitError> {
        let Some(dir) = self.inner.dir.as_ref().filter(|_| self.inner.offline) else {
            return Ok(());
        };
        let kept = M::load(&self.cache(dir, name)).map_err(|e| KitError::Kept(Box::new(e)))?;
        let path = || dir.path().to_owned();
        kept.map(drop)
            .ok_or_else(|| KitError::NothingKept { path: path() })
    }

    /// `true` if the agent works without control: it never dials, and its calls fail.
    pub fn is_offline(&self) -> bool {
        self.inner.offline
    }

    fn cache(&self, dir: &StateDir, name: &str) -> LastGood {
        let own = self.inner.identity.spiffe.clone();
        LastGood::new(dir.clone(), name, own, self.inner.credential.clone())
    }

    /// Closes the session, which tells control that the agent left on purpose.
    pub async fn close(&self) {
        // Renewal first: it must not dial for a certificate that nobody will use.
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

/// The keepalive of a kind of agent. Machines in hammer are many, mostly idle, and wait for users:
/// a lost session of theirs may be noticed late.
fn keepalive(kind: CallerKind) -> Keepalive {
    match kind {
        CallerKind::Machine => Keepalive::Patient,
        _ => Keepalive::Prompt,
    }
}
