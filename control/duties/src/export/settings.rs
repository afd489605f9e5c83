//! Where the audit trail is sent, as the configuration says it.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use control_state::AUDIT_EXPORTS_MAX;
use reqwest::Url;
use serde::Deserialize;

/// Longest name of a place.
const NAME_MAX: usize = 63;
const LIKE: &str = "is not a URL like syslog+tls://logs.example:6514 or \
                    https://collector.example:4318/v1/logs";

/// The `[audit]` section.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    export: Vec<PlaceSection>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceSection {
    name: String,
    url: String,
    #[serde(default)]
    ca_file: Option<PathBuf>,
    #[serde(default)]
    authorization_file: Option<PathBuf>,
}

/// How records travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum To {
    /// RFC 5426: a datagram each, which may get lost.
    SyslogUdp { host: String, port: u16 },
    /// RFC 6587, octet counting.
    SyslogTcp { host: String, port: u16 },
    /// RFC 5425.
    SyslogTls { host: String, port: u16 },
    /// OpenTelemetry's logs, OTLP/HTTP with JSON.
    Otlp(Url),
}

/// One place, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// How far it was supplied is noted under this name.
    pub name: String,
    pub to: To,
    /// PEM of the only trusted authorities; None: the system's.
    pub ca_file: Option<PathBuf>,
    /// Holds the value of the header `Authorization`.
    pub authorization_file: Option<PathBuf>,
}

impl Section {
    /// Checks the section.
    pub fn check(self) -> Result<Vec<Place>> {
        ensure!(
            self.export.len() <= AUDIT_EXPORTS_MAX,
            "audit.export: {} places are too many; at most {AUDIT_EXPORTS_MAX}",
            self.export.len()
        );
        let mut places: Vec<Place> = Vec::new();
        for section in self.export {
            let place = section.check()?;
            ensure!(
                places.iter().all(|it| it.name != place.name),
                "audit.export.name: {:?} is there twice; each place needs a name of its own",
                place.name
            );
            places.push(place);
        }
        Ok(places)
    }
}

impl PlaceSection {
    fn check(self) -> Result<Place> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        let is_name = !self.name.is_empty() && self.name.len() <= NAME_MAX;
        ensure!(
            is_name && self.name.chars().all(plain),
            "audit.export.name: {:?} must be 1 to {NAME_MAX} lower-case letters, digits, '-', '_' \
             and '.'",
            self.name
        );
        let to = to(&self.url).with_context(|| format!("audit.export {:?}: url", self.name))?;
        let is_http = matches!(to, To::Otlp(_));
        ensure!(
            is_http || self.authorization_file.is_none(),
            "audit.export {:?}: authorization_file is for https:// alone; syslog has no such thing",
            self.name
        );
        let is_tls = match &to {
            To::Otlp(url) => url.scheme() == "https",
            To::SyslogTls { .. } => true,
            To::SyslogUdp { .. } | To::SyslogTcp { .. } => false,
        };
        ensure!(
            is_tls || self.ca_file.is_none() && self.authorization_file.is_none(),
            "audit.export {:?}: ca_file and authorization_file need TLS, which {:?} has not",
            self.name,
            self.url
        );
        Ok(Place {
            name: self.name,
            to,
            ca_file: self.ca_file,
            authorization_file: self.authorization_file,
        })
    }
}

fn to(text: &str) -> Result<To> {
    let url = Url::parse(text).context(LIKE)?;
    // Not repeated: there is a password in it.
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "must not hold a user or a password; a token goes into authorization_file"
    );
    let host = url.host_str().unwrap_or_default();
    ensure!(!host.is_empty(), "{LIKE}, but {text:?}");
    let plain = matches!(url.path(), "" | "/") && url.query().is_none();
    let host = host.trim_matches(['[', ']']).to_owned();
    let port = |default| url.port().unwrap_or(default);
    Ok(match url.scheme() {
        "http" | "https" => To::Otlp(url),
        "syslog+udp" if plain => To::SyslogUdp {
            port: port(514),
            host,
        },
        "syslog+tcp" if plain => To::SyslogTcp {
            port: port(601),
            host,
        },
        "syslog+tls" if plain => To::SyslogTls {
            port: port(6514),
            host,
        },
        _ => anyhow::bail!("{LIKE}, but {text:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<Vec<Place>> {
        toml::from_str::<Section>(text)?.check()
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
                To::SyslogUdp {
                    host: host(),
                    port: 514,
                },
            ),
            (
                "syslog+tcp://logs.example:1601/",
                To::SyslogTcp {
                    host: host(),
                    port: 1601,
                },
            ),
            (
                "syslog+tls://[::1]",
                To::SyslogTls {
                    host: "::1".to_owned(),
                    port: 6514,
                },
            ),
        ];
        for (url, to) in cases {
            assert_eq!(syslog(url), to, "{url}");
        }
        assert!(matches!(syslog("https://c.example/v1/logs"), To::Otlp(_)));
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
            let error = format!("{:#}", checked(&format!("[[export]]\n{text}")).unwrap_err());
            assert!(error.contains(hint), "{text:?}: {error}");
            assert!(!error.contains("secret@"), "{error}");
        }
        let one = "[[export]]\nname = 'a'\nurl = 'syslog+udp://h'\n";
        let error = checked(&one.repeat(2)).unwrap_err().to_string();
        assert!(error.contains("twice"), "{error}");
    }
}
