//! A target of the audit trail.

use std::path::PathBuf;

use reqwest::Url;

/// The protocol of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportProtocol {
    /// Syslog over UDP (RFC 5426). Datagrams may be lost.
    SyslogUdp {
        /// Host name or IP address.
        host: String,
        /// UDP port.
        port: u16,
    },
    /// Syslog over TCP with octet counting (RFC 6587).
    SyslogTcp {
        /// Host name or IP address.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Syslog over TLS (RFC 5425).
    SyslogTls {
        /// Host name or IP address, which the certificate must name.
        host: String,
        /// TCP port.
        port: u16,
    },
    /// Logs of OpenTelemetry: OTLP/HTTP with JSON.
    Otlp(Url),
}

/// A checked target of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportTarget {
    /// Name under which the state records its position.
    pub name: String,
    /// Protocol and address.
    pub to: ExportProtocol,
    /// PEM file of the only trusted authorities. `None` means the system's.
    pub ca_file: Option<PathBuf>,
    /// File with the value of the header `Authorization`. `None` means that none is sent.
    pub authorization_file: Option<PathBuf>,
}
