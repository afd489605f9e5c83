//! The section `[audit]`: targets of the audit trail.

use std::path::PathBuf;

use control_state::AUDIT_EXPORTS_MAX;
use reqwest::Url;
use serde::Deserialize;

use super::target::{ExportProtocol, ExportTarget};
use crate::SettingError;

/// Maximum length of a target's name, bytes. A longer name is refused.
const NAME_MAX: usize = 63;
/// The problem with an unusable URL.
const LIKE: &str = "is not a URL like syslog+tls://logs.example:6514 or \
                    https://collector.example:4318/v1/logs";

/// The section `[audit]` as it is in the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditSection {
    export: Vec<TargetSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetSection {
    name: String,
    url: String,
    #[serde(default)]
    ca_file: Option<PathBuf>,
    #[serde(default)]
    authorization_file: Option<PathBuf>,
}

impl AuditSection {
    /// Checks the section.
    ///
    /// # Errors
    /// The first fault; the message names the field.
    pub fn check(self) -> Result<Vec<ExportTarget>, SettingError> {
        if self.export.len() > AUDIT_EXPORTS_MAX {
            let problem = format!(
                "{} places are too many; at most {AUDIT_EXPORTS_MAX}",
                self.export.len()
            );
            return Err(SettingError::new("audit.export", problem));
        }
        let mut places: Vec<ExportTarget> = Vec::new();
        for section in self.export {
            let place = section.check()?;
            if places.iter().any(|other| other.name == place.name) {
                let problem = format!(
                    "{:?} is there twice; each place needs a name of its own",
                    place.name
                );
                return Err(SettingError::new("audit.export.name", problem));
            }
            places.push(place);
        }
        Ok(places)
    }
}

impl TargetSection {
    fn check(self) -> Result<ExportTarget, SettingError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let is_name = !self.name.is_empty() && self.name.len() <= NAME_MAX;
        if !is_name || !self.name.chars().all(plain) {
            let problem = format!(
                "{:?} must be 1 to {NAME_MAX} lower-case letters, digits, '-', '_' and '.'",
                self.name
            );
            return Err(SettingError::new("audit.export.name", problem));
        }
        let field = format!("audit.export {:?}", self.name);
        let to = to(&format!("{field}: url"), &self.url)?;
        let is_http = matches!(to, ExportProtocol::Otlp(_));
        if !is_http && self.authorization_file.is_some() {
            return Err(SettingError::new(
                field,
                "authorization_file is for https:// alone; syslog has no such thing",
            ));
        }
        let is_tls = match &to {
            ExportProtocol::Otlp(url) => url.scheme() == "https",
            ExportProtocol::SyslogTls { .. } => true,
            ExportProtocol::SyslogUdp { .. } | ExportProtocol::SyslogTcp { .. } => false,
        };
        if !is_tls && (self.ca_file.is_some() || self.authorization_file.is_some()) {
            let problem = format!(
                "ca_file and authorization_file need TLS, which {:?} has not",
                self.url
            );
            return Err(SettingError::new(field, problem));
        }
        Ok(ExportTarget {
            name: self.name,
            to,
            ca_file: self.ca_file,
            authorization_file: self.authorization_file,
        })
    }
}

/// Protocol and address of a URL.
fn to(field: &str, text: &str) -> Result<ExportProtocol, SettingError> {
    let url = Url::parse(text).map_err(|error| SettingError::caused(field, LIKE, error))?;
    // Checked before any error that quotes the URL: the message would contain the password.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(SettingError::new(
            field,
            "must not hold a user or a password; a token goes into authorization_file",
        ));
    }
    let unusable = || SettingError::new(field, format!("{LIKE}, but {text:?}"));
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() {
        return Err(unusable());
    }
    let plain = matches!(url.path(), "" | "/") && url.query().is_none();
    let host = host.trim_matches(['[', ']']).to_owned();
    let port = |default| url.port().unwrap_or(default);
    Ok(match url.scheme() {
        "http" | "https" => ExportProtocol::Otlp(url),
        "syslog+udp" if plain => ExportProtocol::SyslogUdp {
            port: port(514),
            host,
        },
        "syslog+tcp" if plain => ExportProtocol::SyslogTcp {
            port: port(601),
            host,
        },
        "syslog+tls" if plain => ExportProtocol::SyslogTls {
            port: port(6514),
            host,
        },
        _ => return Err(unusable()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Vec<ExportTarget>, SettingError> {
        toml::from_str::<AuditSection>(text).unwrap().check()
    }

    #[test]
    fn places() {
        let syslog = |url: &str| {
            let text = format!("[[export]]\nname = 'a'\nurl = '{url}'");
            checked(&text).unwrap().remove(0).to
        };
        let host = || "logs.example".to_owned();
        let cases = [
            (
                "syslog+udp://logs.example",
                ExportProtocol::SyslogUdp {
                    host: host(),
                    port: 514,
                },
            ),
            (
                "syslog+tcp://logs.example:1601/",
                ExportProtocol::SyslogTcp {
                    host: host(),
                    port: 1601,
                },
            ),
            (
                "syslog+tls://[::1]",
                ExportProtocol::SyslogTls {
                    host: "::1".to_owned(),
                    port: 6514,
                },
            ),
        ];
        for (url, to) in cases {
            assert_eq!(syslog(url), to, "{url}");
        }
        assert!(matches!(
            syslog("https://c.example/v1/logs"),
            ExportProtocol::Otlp(_)
        ));
    }

    #[test]
    fn mistakes_name_the_field_and_the_way_out() {
        let long = format!(
            "name = '{}'\nurl = 'syslog+udp://h'",
            "a".repeat(NAME_MAX + 1)
        );
        for (text, hint) in [
            ("name = 'A b'\nurl = 'syslog+udp://h'", "lower-case"),
            (long.as_str(), "1 to 63"),
            ("name = 'a'\nurl = 'h:514'", "syslog+tls://"),
            ("name = 'a'\nurl = 'syslog+tcp://h/x'", "syslog+tls://"),
            (
                "name = 'a'\nurl = 'https://u:secret@h/'",
                "authorization_file",
            ),
            (
                "name = 'a'\nurl = 'syslog+tls://h'\nauthorization_file = '/t'",
                "https://",
            ),
            ("name = 'a'\nurl = 'http://h'\nca_file = '/c'", "TLS"),
            (
                "name = 'a'\nurl = 'http://h'\nauthorization_file = '/t'",
                "TLS",
            ),
        ] {
            let error = format!("{}", checked(&format!("[[export]]\n{text}")).unwrap_err());
            assert!(error.contains(hint), "{text:?}: {error}");
            assert!(!error.contains("secret@"), "{error}");
        }
        let one = "[[export]]\nname = 'a'\nurl = 'syslog+udp://h'\n";
        let error = checked(&one.repeat(2)).unwrap_err().to_string();
        assert!(error.contains("twice"), "{error}");
    }
}
