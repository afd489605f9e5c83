//! Errors of starting and joining.

use std::io;
use std::path::PathBuf;

use proto_identity::IdentityError;
use proto_link::LinkStatus;

/// A reason why an agent cannot start or join.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// A file of the state directory cannot be read or written.
    #[error("{path}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file of the state directory has invalid content.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// The failed check.
        reason: String,
    },
    /// Others may read the state directory or the ticket.
    #[error("{path} may be read by others (mode {mode:o}); run chmod go= on it")]
    Exposed {
        /// Path of the file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The state directory, or a file in it, belongs to another user.
    #[error("{path} belongs to user {owner}, and the agent runs as user {own}; run chown on it")]
    ForeignOwner {
        /// Path of the file or directory.
        path: PathBuf,
        /// User id of its owner.
        owner: u32,
        /// User id of the agent.
        own: u32,
    },
    /// Neither joined nor given a ticket.
    #[error("not joined yet: give --ticket-file with a ticket from `metalmesh join create`")]
    NotJoined,
    /// The host's TPM failed.
    #[error("TPM {path}")]
    Tpm {
        /// Path of its device or socket.
        path: PathBuf,
        /// The TPM's error.
        #[source]
        source: crate::tpm::TpmError,
    },
    /// `--offline` was given before the agent has joined.
    #[error("not joined yet: an agent joins control once before it can work with --offline")]
    OfflineNotJoined,
    /// `--offline` was given, but there is no last-good state.
    #[error(
        "--offline: there is no last-good state in {path}; start this agent without --offline \
         where it reaches control"
    )]
    NothingKept {
        /// The state directory.
        path: PathBuf,
    },
    /// `--offline` was given, but the last-good state is refused.
    #[error("--offline")]
    Kept(#[source] Box<crate::cache::CacheError>),
    /// `--offline` was given to an agent of a kind that only works with control.
    #[error(
        "--offline: a {kind} agent only carries out orders, which control alone gives; \
         start it without --offline"
    )]
    OnlyOrders {
        /// The agent's kind.
        kind: &'static str,
    },
    /// Neither the command line, the ticket nor the state directory names control.
    #[error("no address of control is known: give --control host:port")]
    NoControl,
    /// Control refused the ticket.
    #[error("control refuses the ticket")]
    Refused(#[source] LinkStatus),
    /// Control did not answer.
    #[error("control did not answer")]
    Link(#[source] LinkStatus),
    /// The certificate is for another kind of agent.
    #[error("the certificate is for {got}, this is a {want} agent")]
    WrongKind {
        /// Identity in the certificate.
        got: String,
        /// The agent's kind.
        want: &'static str,
    },
    /// The state directory got another identity while the agent ran.
    #[error("the state directory has the identity {got} now; start the agent again")]
    OtherIdentity {
        /// Identity in the stored certificate.
        got: String,
    },
    /// The roots that control sent are not those of the ticket.
    #[error("control's roots are not those that the ticket names")]
    WrongRoots,
    /// The collector's URL cannot be used.
    #[error("--otlp")]
    Otlp(#[from] base_telemetry::traces::CollectorError),
    /// The address for metrics cannot be listened on.
    #[error("--metrics: cannot listen on {listen}")]
    Metrics {
        /// The address.
        listen: std::net::SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Key, certificate or ticket is unusable.
    #[error("identity")]
    Identity(#[from] IdentityError),
}
