//! The open connection of an exporter to its target.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::otlp::Otlp;
use super::syslog::Syslog;
use super::target::{ExportProtocol, ExportTarget};

/// The protocol's side of an exporter.
pub(super) enum ExportSink {
    Syslog(Box<Syslog>),
    Otlp(Otlp),
}

impl ExportSink {
    /// Opens the target for the records of this cluster.
    ///
    /// # Errors
    /// The target cannot be used; the message names the field within the target.
    pub(super) fn open(place: &ExportTarget, cluster: &str) -> Result<Self> {
        let syslog = |host: &str, port, is_udp, tls| {
            Self::Syslog(Box::new(Syslog::new(host, port, is_udp, tls)))
        };
        Ok(match &place.to {
            ExportProtocol::SyslogUdp { host, port } => syslog(host, *port, true, None),
            ExportProtocol::SyslogTcp { host, port } => syslog(host, *port, false, None),
            ExportProtocol::SyslogTls { host, port } => {
                let tls = base_outbound::trusting(place.ca_file.as_deref())?;
                syslog(host, *port, false, Some(Arc::new(tls)))
            }
            ExportProtocol::Otlp(url) => {
                let tls = (url.scheme() == "https")
                    .then(|| base_outbound::trusting(place.ca_file.as_deref()));
                let tls = tls.transpose()?;
                let authorization = place.authorization_file.as_deref().map(|path| {
                    let text = std::fs::read_to_string(path);
                    text.with_context(|| {
                        format!("authorization_file: cannot read {}", path.display())
                    })
                });
                let authorization = authorization.transpose()?;
                let authorization = authorization.as_deref().map(str::trim);
                Self::Otlp(Otlp::new(url.clone(), authorization, tls, cluster)?)
            }
        })
    }
}
