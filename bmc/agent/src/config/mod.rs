//! The configuration: the list of BMCs, the trust in their certificates, and the path of the
//! credentials. Read once at the start; every mistake is refused by name.

mod file;
mod login;
mod target;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agents_update::mesh_agent::SelfUpdateSection;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use file::File;
pub use login::{Credentials, Login};
pub use target::{Interface, Speech, Target};

/// BMCs in the static list. A configuration with more is refused.
const BMCS_MAX: usize = 10_000;
/// Shortest interval of readings, s. A configuration with a shorter one is refused.
const INTERVAL_S_MIN: u64 = 5;
/// Longest interval of readings, s, half of the time after which control takes a machine off the offer
/// whose BMC is not read. A configuration with a longer one is refused.
const INTERVAL_S_MAX: u64 = 600;

/// The reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Without the parser's excerpt and without values: both may repeat a password.
    #[error("{path}: line {line}: {reason}")]
    Syntax {
        path: PathBuf,
        line: usize,
        reason: String,
    },
    #[error("{path} may be read by others (mode {mode:o}); run chmod go= on it")]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{0}")]
    Wrong(String),
    #[error("{path} holds no usable certificate")]
    Certificates { path: PathBuf },
}

/// The configuration of the agent.
#[derive(Debug, Clone)]
pub struct Config {
    /// Interval of readings of all BMCs.
    pub interval: Duration,
    pub bmcs: Vec<Target>,
    /// Protocols and trust for BMCs that pixie found.
    pub candidates: Speech,
    pub credentials: Credentials,
    /// Replacement of the agent's program by signed releases. `None` means that nothing is replaced.
    pub self_update: Option<SelfUpdateSection>,
}

impl Config {
    /// Reads a configuration file and the credentials file that it names. A relative name is
    /// relative to the configuration's directory.
    ///
    /// # Errors
    /// [`ConfigError`] if one of them cannot be read or is invalid, or if other users may read the
    /// credentials.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let file: File = parse(path)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        check_sizes(&file)?;
        let mut bmcs: Vec<Target> = Vec::new();
        for bmc in file.bmc {
            let address = bmc
                .address
                .ok_or_else(|| ConfigError::Wrong("a [[bmc]] section has no address".into()))?;
            if bmcs.iter().any(|other| other.address == address) {
                return Err(ConfigError::Wrong(format!("BMC {address} is listed twice")));
            }
            let machine = bmc.machine_uuid;
            let speech = bmc.check(folder, &format!("BMC {address}"))?;
            bmcs.push(Target {
                address,
                speech,
                machine,
            });
        }
        if file.candidates.address.is_some() || file.candidates.machine_uuid.is_some() {
            let reason = "[candidates] is for BMCs that pixie finds: it names none";
            return Err(ConfigError::Wrong(reason.into()));
        }
        let credentials = folder.join(file.credentials);
        refuse_exposed(&credentials)?;
        Ok(Self {
            interval: Duration::from_secs(file.interval_s),
            bmcs,
            candidates: file.candidates.check(folder, "[candidates]")?,
            credentials: parse(&credentials)?,
            self_update: file.self_update,
        })
    }

    /// Checks the text of a configuration file. Files that it names are not read.
    ///
    /// # Errors
    /// [`ConfigError`] with the line.
    pub fn check(text: &str) -> Result<(), ConfigError> {
        let file: File = parse_text(Path::new("the configuration"), text)?;
        check_sizes(&file)
    }
}

/// Checks the bounds of a file.
fn check_sizes(file: &File) -> Result<(), ConfigError> {
    if file.bmc.len() > BMCS_MAX {
        return Err(ConfigError::Wrong(format!(
            "more than {BMCS_MAX} [[bmc]] sections"
        )));
    }
    if !(INTERVAL_S_MIN..=INTERVAL_S_MAX).contains(&file.interval_s) {
        let reason =
            format!("interval_s must be at least {INTERVAL_S_MIN} and at most {INTERVAL_S_MAX}");
        return Err(ConfigError::Wrong(reason));
    }
    Ok(())
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.into(),
        source,
    })?;
    parse_text(path, &text)
}

/// Parses the text of a file.
fn parse_text<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..start]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        let reason = without_value(error.message().lines().next().unwrap_or_default());
        ConfigError::Syntax {
            path: path.into(),
            line,
            reason,
        }
    })
}

/// Cuts the value out of serde's `invalid type: string "…", expected …`.
fn without_value(message: &str) -> String {
    let (start, end) = (message.split_once(": "), message.rsplit_once(", expected "));
    match (start, end) {
        (Some((kind, _)), Some((_, expected))) => format!("{kind}, expected {expected}"),
        _ => message.to_owned(),
    }
}

fn refuse_exposed(path: &Path) -> Result<(), ConfigError> {
    let metadata = std::fs::metadata(path).map_err(|source| ConfigError::Read {
        path: path.into(),
        source,
    })?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(ConfigError::Exposed {
            path: path.into(),
            mode,
        })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let wrong = || ConfigError::Certificates { path: path.into() };
    let certificates = CertificateDer::pem_file_iter(path)
        .map_err(|_| wrong())?
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| wrong())?;
    if certificates.is_empty() {
        Err(wrong())
    } else {
        Ok(certificates)
    }
}

#[cfg(test)]
mod tests {
    use bmc_redfish::Trust;

    use super::*;

    fn read(config: &str, credentials: &str, mode: u32) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("bmc.toml"), config).unwrap();
        std::fs::write(path("login.toml"), credentials).unwrap();
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path("login.toml"), permissions).unwrap();
        Config::read(&path("bmc.toml"))
    }

    const LOGIN: &str = "[default]\nuser = \"admin\"\npassword = \"topsecret\"\n\
        [bmc.\"10.0.0.2\"]\nuser = \"root\"\npassword = \"other\"\n";

    #[test]
    fn bmcs_have_their_speech_and_their_login() {
        let pin = "ab".repeat(32);
        let config = read(
            &format!(
                "credentials = \"login.toml\"\n[[bmc]]\naddress = \"10.0.0.1\"\ninterface = \
                 \"ipmi\"\n[[bmc]]\naddress = \"10.0.0.2\"\nredfish_port = 8443\ntls_sha256 = \
                 \"{pin}\"\nmachine_uuid = \"6f1c0001-0000-4000-8000-525400770101\"\n"
            ),
            LOGIN,
            0o600,
        )
        .unwrap();
        assert_eq!(config.interval, Duration::from_secs(60));
        assert_eq!(config.bmcs[0].speech.ipmi_port, 623);
        let second = &config.bmcs[1];
        assert!(matches!(second.speech.trust, Some(Trust::Pin(_))));
        assert_eq!(
            (second.speech.redfish_port, second.machine.is_some()),
            (8443, true)
        );
        assert_eq!(
            config
                .credentials
                .of("10.0.0.1".parse().unwrap())
                .unwrap()
                .user,
            "admin"
        );
        assert_eq!(
            config
                .credentials
                .of("10.0.0.2".parse().unwrap())
                .unwrap()
                .user,
            "root"
        );
        assert!(!format!("{config:?}").contains("topsecret"));
    }

    #[test]
    fn the_example_is_good_and_whole() {
        let text = include_str!("../../metalmesh-bmc.example.toml");
        // The example names files of an installed host: these stand for them.
        let own = "credentials = \"login.toml\"\n";
        let installed = "credentials = \"/etc/metalmesh/bmc-credentials.toml\"\n";
        assert!(text.contains(installed));
        let text = text.replace(installed, own);
        assert_eq!(read(&text, LOGIN, 0o600).unwrap().bmcs.len(), 0);
        let all: String = text
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            // An authority is read when the configuration is.
            .filter(|line| !line.starts_with("tls_ca"))
            .map(|line| format!("{line}\n"))
            .collect();
        let config = read(&all, LOGIN, 0o600).unwrap();
        assert!(config.bmcs.len() == 2 && config.candidates.efi);
        assert!(config.self_update.is_some());
        Config::check(&all).unwrap();
    }

    #[test]
    fn mistakes_are_refused_by_name_and_never_repeat_a_password() {
        let base = "credentials = \"login.toml\"\n";
        for (more, reason) in [
            ("interval_s = 1", "at least 5"),
            ("interval_s = 601", "at most 600"),
            (
                "[[bmc]]\naddress = \"10.0.0.1\"\ninterface = \"redfish\"",
                "needs tls_sha256",
            ),
            (
                "[[bmc]]\naddress = \"10.0.0.1\"\ntls_sha256 = \"12\"",
                "64 hexadecimal",
            ),
            (
                "[[bmc]]\naddress = \"10.0.0.1\"\ntls_ca = \"none.pem\"",
                "no usable certificate",
            ),
            (
                "[[bmc]]\naddress = \"10.0.0.1\"\n[[bmc]]\naddress = \"10.0.0.1\"",
                "listed twice",
            ),
            ("[[bmc]]\naddress = \"nowhere\"", "line 3"),
            ("interval = 5", "unknown field"),
            (
                "[[bmc]]\naddress = \"10.0.0.1\"\ntls_pin = \"00\"",
                "unknown field",
            ),
            ("[[bmc]]\nefi = true", "no address"),
            ("[candidates]\naddress = \"10.0.0.1\"", "names none"),
        ] {
            let error = read(&format!("{base}{more}"), LOGIN, 0o600)
                .unwrap_err()
                .to_string();
            assert!(error.contains(reason), "{error}");
        }
        let exposed = read(base, LOGIN, 0o640).unwrap_err().to_string();
        assert!(exposed.contains("chmod go="), "{exposed}");
        let broken = read(base, "[default]\npassword = \"topsecret", 0o600).unwrap_err();
        assert!(!format!("{broken:?}").contains("topsecret"), "{broken:?}");
        for (login, reason) in [
            (
                "default = \"topsecret\"",
                "invalid type, expected struct Login",
            ),
            (
                "[default]\nuser = \"u\"\npassword = 4711",
                "invalid type, expected a string",
            ),
            (
                "bmc = \"topsecret: a, expected b\"",
                "invalid type, expected a map",
            ),
        ] {
            let error = read(base, login, 0o600).unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(!text.contains("topsecret"), "{text}");
            assert!(!text.contains("4711"), "{text}");
            assert!(text.contains(reason), "{text}");
        }
    }
}
