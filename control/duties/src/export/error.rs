//! Failures of an export. All but a refusal are retried.

use std::io;
use std::time::Duration;

use control_state::StateError;
use control_store::{ProposeError, StoreError};
use rustls_pki_types::InvalidDnsNameError;

/// The reason why a step of an exporter failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    /// The state cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The position cannot be written to the state.
    #[error("cannot record the position of the target")]
    Record(#[from] ProposeError<StateError>),
    /// The syslog server did not take the records.
    #[error(transparent)]
    Syslog(#[from] SyslogError),
    /// The collector did not take the records.
    #[error(transparent)]
    Otlp(#[from] OtlpError),
}

/// The reason why a syslog server did not take a batch.
#[derive(Debug, thiserror::Error)]
pub(super) enum SyslogError {
    /// The connection was not open in time.
    #[error("no answer within {} s", .0.as_secs())]
    NoAnswer(Duration),
    /// The server did not read the batch in time.
    #[error("the batch was not read within {} s", .0.as_secs())]
    NotRead(Duration),
    /// The host name resolves to no address.
    #[error("the name {0:?} has no address")]
    NoAddress(String),
    /// The host is not a name that a certificate can have.
    #[error("the name {name:?} cannot be verified by TLS")]
    NotTlsName {
        /// The host of the target.
        name: String,
        /// The fault of the name.
        source: InvalidDnsNameError,
    },
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] io::Error),
}

/// The reason why a collector did not accept a batch.
#[derive(Debug, thiserror::Error)]
pub(super) enum OtlpError {
    /// The collector refuses the records. Sending them again would fail in the same way.
    #[error("it refuses the records: {0}")]
    Refused(String),
    /// The collector cannot be reached.
    #[error(transparent)]
    Unreachable(reqwest::Error),
    /// The collector may accept the batch later.
    #[error("it does not accept the records now: {0}")]
    NotNow(String),
}
