//! The open connection of an exporter to its target.

use std::path::Path;
use std::sync::Arc;

use base_runtime::Chain;
use reqwest::header::HeaderValue;
use rustls::ClientConfig;

use super::otlp::Otlp;
use super::syslog::Syslog;
use super::target::{ExportProtocol, ExportTarget};
use crate::SettingError;

/// The protocol's side of an exporter.
pub(super) enum ExportSink {
    Syslog(Box<Syslog>),
    Otlp(Otlp),
}

impl ExportSink {
    /// Opens the target for the records of this cluster.
    ///
    /// # Errors
    /// The target cannot be used; the message names the target and the field.
    pub(super) fn open(target: &ExportTarget, cluster: &str) -> Result<Self, SettingError> {
        let syslog = |host: &str, port, is_udp, tls| {
            Self::Syslog(Box::new(Syslog::new(host, port, is_udp, tls)))
        };
        Ok(match &target.to {
            ExportProtocol::SyslogUdp { host, port } => syslog(host, *port, true, None),
            ExportProtocol::SyslogTcp { host, port } => syslog(host, *port, false, None),
            ExportProtocol::SyslogTls { host, port } => {
                syslog(host, *port, false, Some(Arc::new(tls(target)?)))
            }
            ExportProtocol::Otlp(url) => {
                let is_tls = url.scheme() == "https";
                let tls = is_tls.then(|| tls(target)).transpose()?;
                let file = target.authorization_file.as_deref();
                let authorization = file.map(|path| authorization(target, path)).transpose()?;
                let otlp = Otlp::new(url.clone(), authorization, tls, cluster);
                Self::Otlp(otlp.map_err(|error| {
                    refused(target, format!("no HTTP client: {}", Chain(&error)))
                })?)
            }
        })
    }
}

/// The TLS configuration that trusts the target's authorities.
fn tls(target: &ExportTarget) -> Result<ClientConfig, SettingError> {
    let tls = base_outbound::trusting(target.ca_file.as_deref());
    tls.map_err(|error| refused(target, Chain(&error).to_string()))
}

/// The value of the header `Authorization` in a file, marked as a secret.
fn authorization(target: &ExportTarget, path: &Path) -> Result<HeaderValue, SettingError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let path = path.display();
        refused(
            target,
            format!("authorization_file: cannot read {path}: {error}"),
        )
    })?;
    let mut value = HeaderValue::from_str(text.trim()).map_err(|error| {
        refused(
            target,
            format!("authorization_file: not a value of a header: {error}"),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn refused(target: &ExportTarget, problem: String) -> SettingError {
    SettingError::new(format!("audit.export {:?}", target.name), problem)
}
