//! Why an agent cannot start or join.

use std::io;
use std::path::PathBuf;

use proto_identity::IdentityError;
use proto_link::LinkStatus;

/// Why an agent cannot start or join.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// A file of the state directory.
    #[error("{path}")]
    File {
        /// Which.
        path: PathBuf,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// A file of the state directory does not hold what it should.
    #[error("{path} is damaged: {reason}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Others may read the state directory or the ticket.
    #[error("{path} may be read by others (mode {mode:o}); run chmod go= on it")]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Neither joined nor given a ticket.
    #[error("not joined yet: give --ticket-file with a ticket from `metalmesh join create`")]
    NotJoined,
    /// The host's TPM.
    #[error("TPM {path}")]
    Tpm {
        /// Its device or socket.
        path: PathBuf,
        /// What happened.
        #[source]
        source: crate::tpm::TpmError,
    },
    /// The agent was to work without control, but joining needs it.
    #[error("not joined yet: an agent joins control once before it can work with --offline")]
    OfflineNotJoined,
    /// The agent was to work without control, but has nothing to go by.
    #[error(
        "--offline: there is no last-good state in {path}; start this agent without --offline \
         where it reaches control"
    )]
    NothingKept {
        /// The state directory.
        path: PathBuf,
    },
    /// The agent was to work without control, but what it has is not to be gone by.
    #[error("--offline")]
    Kept(#[source] Box<crate::cache::CacheError>),
    /// An agent of this kind has nothing to do without control.
    #[error(
        "--offline: a {kind} agent only carries out orders, which control alone gives; \
         start it without --offline"
    )]
    OnlyOrders {
        /// Which.
        kind: &'static str,
    },
    /// Neither the command line, the ticket nor the state directory names control.
    #[error("no address of control is known: give --control host:port")]
    NoControl,
    /// Control refused the ticket.
    #[error("control refuses the ticket")]
    Refused(#[source] LinkStatus),
    /// Control could not be asked.
    #[error("control could not be asked")]
    Link(#[source] LinkStatus),
    /// The certificate is for something else than this agent.
    #[error("the certificate is for {got}, this is a {want} agent")]
    WrongKind {
        /// Identity in the certificate.
        got: String,
        /// What this agent is.
        want: &'static str,
    },
    /// The roots that control sent are not those of the ticket.
    #[error("control's roots are not those that the ticket names")]
    WrongRoots,
    /// There is no telling spans there.
    #[error("--otlp")]
    Otlp(#[from] base_telemetry::traces::CollectorError),
    /// The address for metrics cannot be listened on.
    #[error("--metrics: cannot listen on {listen}")]
    Metrics {
        /// Which.
        listen: std::net::SocketAddr,
        /// What happened.
        #[source]
        source: io::Error,
    },
    /// Key, certificate or ticket is unusable.
    #[error("identity")]
    Identity(#[from] IdentityError),
}
