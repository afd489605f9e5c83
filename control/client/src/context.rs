//! The file of named servers: `~/.config/metalmesh/config.yaml`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use proto_bounds::{NESTED_PROBLEM, NESTED_REMEDY};
use serde::de::Error as _;
use serde::{Deserialize, Serialize};

use crate::error::ClientError;

/// Environment variable that names the context file.
pub const ENV_CONFIG: &str = "METALMESH_CONFIG";

/// Secret text, which `Debug` redacts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretText(String);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("<redacted>")
    }
}

/// A named server, and the token to use with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServerContext {
    /// Name of the context.
    pub name: String,
    /// URL of the server, `http://` or `https://`.
    pub api_url: String,
    /// The token. `None` means it is in `token_file`, or calls have no token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_token: Option<SecretText>,
    /// File with the token, read by each command. It takes precedence over `api_token`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// File with the authority of the server's certificate, PEM. `None` means the system's ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Project of commands without `--project`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_project: Option<String>,
}

/// The context file: all contexts and the name of the current one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ServerContexts {
    /// Name of the current context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_context: Option<String>,
    /// Name of the previous context, for `metalmesh context use -`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_context: Option<String>,
    /// All contexts.
    pub contexts: Vec<ServerContext>,
}

impl ServerContexts {
    /// Path of the context file: the given one, else METALMESH_CONFIG, else in XDG_CONFIG_HOME or
    /// `~/.config`.
    ///
    /// # Errors
    /// [`ClientError::NoHome`] if none of them is set.
    pub fn path(given: Option<&Path>) -> Result<PathBuf, ClientError> {
        if let Some(path) = given {
            return Ok(path.to_owned());
        }
        if let Some(path) = std::env::var_os(ENV_CONFIG).filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        let base = std::env::var_os("XDG_CONFIG_HOME")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
            .ok_or(ClientError::NoHome)?;
        Ok(base.join("metalmesh/config.yaml"))
    }

    /// Reads the file. A missing or empty file has no contexts.
    ///
    /// # Errors
    /// [`ClientError::File`] if it cannot be read, [`ClientError::ContextFile`] if it is not valid.
    pub fn load(path: &Path) -> Result<Self, ClientError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(source) => {
                return Err(ClientError::File {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let parsed = match proto_bounds::is_flat(text.as_bytes()) {
            true => serde_norway::from_str(&text),
            false => {
                let problem = format!("{NESTED_PROBLEM}; {NESTED_REMEDY}");
                Err(serde_norway::Error::custom(problem))
            }
        };
        parsed.map_err(|source| ClientError::ContextFile {
            path: path.to_owned(),
            source,
        })
    }

    /// Replaces the file atomically, with mode 0600.
    ///
    /// # Errors
    /// [`ClientError::File`] if it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ClientError> {
        let text = serde_norway::to_string(self).map_err(|source| ClientError::ContextFile {
            path: path.to_owned(),
            source,
        })?;
        let failed = |source| ClientError::File {
            action: "write",
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(failed)?;
        }
        let partial = path.with_extension("yaml.new");
        // A file of an interrupted run could have other permissions, which the token would inherit.
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial)
            .map_err(failed)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        fs::rename(&partial, path).map_err(failed)
    }

    /// Finds a context by its name.
    ///
    /// # Errors
    /// [`ClientError::NoContext`] if there is none.
    pub fn get(&self, name: &str) -> Result<&ServerContext, ClientError> {
        self.contexts
            .iter()
            .find(|context| context.name == name)
            .ok_or_else(|| ClientError::NoContext(name.to_owned()))
    }

    /// The current context. `None` means none is selected, or it was removed from the file.
    pub fn current(&self) -> Option<&ServerContext> {
        self.current_context
            .as_deref()
            .and_then(|name| self.get(name).ok())
    }

    /// Adds a context, or replaces the one with its name.
    pub fn put(&mut self, context: ServerContext) {
        match self
            .contexts
            .iter_mut()
            .find(|known| known.name == context.name)
        {
            Some(known) => *known = context,
            None => self.contexts.push(context),
        }
    }

    /// Makes a context the current one; `-` is the previous one.
    ///
    /// # Errors
    /// [`ClientError::NoContext`] if there is none.
    pub fn switch(&mut self, name: &str) -> Result<(), ClientError> {
        let name = match (name, &self.previous_context) {
            ("-", Some(previous)) => previous.clone(),
            _ => name.to_owned(),
        };
        self.get(&name)?;
        if self.current_context.as_deref() != Some(&name) {
            self.previous_context = self.current_context.replace(name);
        }
        Ok(())
    }

    /// Removes a context.
    ///
    /// # Errors
    /// [`ClientError::NoContext`] if there is none.
    pub fn remove(&mut self, name: &str) -> Result<(), ClientError> {
        self.get(name)?;
        self.contexts.retain(|context| context.name != name);
        for pointer in [&mut self.current_context, &mut self.previous_context] {
            if pointer.as_deref() == Some(name) {
                *pointer = None;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn context(name: &str) -> ServerContext {
        ServerContext {
            name: name.into(),
            api_url: "http://127.0.0.1:4443".into(),
            api_token: Some(SecretText::new("very-secret")),
            token_file: None,
            ca_file: None,
            default_project: None,
        }
    }

    #[test]
    fn the_file_is_its_owners() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/config.yaml");
        let mut contexts = ServerContexts::default();
        contexts.put(context("one"));
        contexts.put(context("two"));
        contexts.switch("one").unwrap();
        contexts.save(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(ServerContexts::load(&path).unwrap(), contexts);
        assert!(!format!("{contexts:?}").contains("very-secret"));
    }

    #[test]
    fn switching() {
        let mut contexts = ServerContexts::default();
        contexts.put(context("one"));
        contexts.put(context("two"));
        contexts.switch("one").unwrap();
        contexts.switch("two").unwrap();
        contexts.switch("-").unwrap();
        assert_eq!(contexts.current().unwrap().name, "one");
        assert!(contexts.switch("three").is_err());
        contexts.remove("one").unwrap();
        assert!(contexts.current().is_none());
    }

    #[test]
    fn a_missing_file_is_empty_and_a_bad_one_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        assert_eq!(
            ServerContexts::load(&path).unwrap(),
            ServerContexts::default()
        );
        fs::write(&path, "contexts: 5").unwrap();
        assert!(matches!(
            ServerContexts::load(&path),
            Err(ClientError::ContextFile { .. })
        ));
    }
}
