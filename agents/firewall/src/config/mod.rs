//! The configuration file of MEP-16.
//!
//! The file is read as a whole and strictly: an unknown field, a source that is not declared or a
//! value of another type is an error with its line. The *objects* of the static source (networks,
//! rules, services) are kept as they are, and checked one by one by [`crate::admit`].

mod controllers;
mod droptailer;
mod error;
mod given;
mod lines;
mod release_keys;
mod self_update;
mod source_name;
mod sources;
mod static_source;

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_norway::Value;

pub use controllers::{ControllerConfig, ControllersConfig, FirewallController};
pub use droptailer::DroptailerConfig;
pub use error::ConfigError;
pub(crate) use release_keys::{add_keys_beside, add_release_keys, release_keys_file};
pub use self_update::SelfUpdateConfig;
pub use source_name::SourceName;
pub use sources::{KubernetesSource, MetalSource, SourcesConfig};
pub use static_source::{FirewallSpec, PolicyLists, StaticSource};

/// Largest file, bytes. Ten thousand rules are about 2 MiB.
const FILE_LEN_MAX: u64 = 16 * 1024 * 1024;

/// The configuration of a firewall.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the firewall. `None` means the name of the host.
    #[serde(default)]
    pub name: Option<String>,
    /// Sources that controllers may use.
    pub sources: SourcesConfig,
    /// The controllers and their sources.
    pub controllers: ControllersConfig,
}

impl Config {
    /// Parses a file's text.
    ///
    /// # Errors
    /// The text is no valid configuration, or names a source that this version does not serve.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let config = Self::decode(text)?;
        controllers::check(&config, text)?;
        Ok(config)
    }

    /// Parses a text without checking whether its sources are served.
    ///
    /// # Errors
    /// The text is no valid configuration, or nested so deeply that reading it would take long.
    pub fn decode(text: &str) -> Result<Self, ConfigError> {
        decode(text)
    }

    /// Parses a text whatever fields it has: one for a newer program has others.
    ///
    /// # Errors
    /// The text is no YAML, or nested so deeply that reading it would take long.
    pub(crate) fn decode_any(text: &str) -> Result<Value, ConfigError> {
        decode(text)
    }

    /// Reads a file's text.
    ///
    /// # Errors
    /// The file cannot be read, is no regular file, is too large or no text.
    pub fn read(path: &Path) -> Result<String, ConfigError> {
        let read = || -> io::Result<String> {
            let mut text = String::new();
            // To open a pipe would wait for its writer.
            let file = fs::OpenOptions::new()
                .read(true)
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .open(path)?;
            if !file.metadata()?.is_file() {
                let problem = "it is no regular file; name a file";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
            }
            file.take(FILE_LEN_MAX + 1).read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|source| ConfigError::Read {
            path: path.to_owned(),
            source,
        })?;
        if u64::try_from(text.len()).is_ok_and(|len| len > FILE_LEN_MAX) {
            return Err(ConfigError::TooLarge {
                path: path.to_owned(),
                bytes_max: FILE_LEN_MAX,
            });
        }
        Ok(text)
    }

    /// Fields that are valid, and without effect in this version.
    #[must_use]
    pub fn notices(&self) -> Vec<&'static str> {
        let mut notices = Vec::new();
        let firewall = &self.controllers.firewall;
        if firewall.self_update.enabled && firewall.self_update.keys.is_empty() {
            notices.push(
                "controllers.firewall.selfUpdate has no effect without the keys of releases; add \
                 those that `metalmesh release keygen` printed as selfUpdate.keys, or to the file \
                 release-keys beside this one",
            );
        }
        notices
    }

    /// Name of the firewall.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| {
            let host = nix::unistd::gethostname().ok();
            host.and_then(|name| name.into_string().ok())
                .unwrap_or_else(|| "firewall".to_owned())
        })
    }
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T, ConfigError> {
    if !proto_bounds::is_flat(text.as_bytes()) {
        return Err(ConfigError::nested());
    }
    serde_norway::from_str(text).map_err(|error| ConfigError::of_parser(&error))
}
