//! The section `[ironic]`: Ironic's API on a listener of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use control_facades_ironic::{IronicFacade, IronicSettings};
use control_front::{Front, serve};
use control_gate::{ApiGate, ServiceContext};
use control_oslo::{DangerousRule, OsloPolicy, PolicyFile, PolicyLint, ironic};
use proto_types::ProjectId;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use url::Url;

/// Accepts every dangerous rule: `allow_dangerous = ["all"]`.
const ALL: &str = "all";

/// The section `[ironic]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct IronicSection {
    /// TCP address. `None` means that Ironic's API is not served.
    listen: Option<SocketAddr>,
    /// Address by which clients reach it. `None` means the one that each request names.
    url: Option<Url>,
    /// Policy file. `None` means the defaults of Ironic.
    policy_file: Option<PathBuf>,
    /// Dangerous rules of the file that are accepted, by name.
    allow_dangerous: Vec<String>,
    /// Id of the project whose services have rights of the site.
    service_project: Option<ProjectId>,
}

/// The bound listener of Ironic's API.
#[derive(Debug)]
pub(crate) struct IronicListener {
    listener: TcpListener,
    settings: IronicSettings,
}

impl IronicSection {
    /// Checks the section.
    pub(crate) fn check(self) -> Result<Self> {
        ensure!(
            self.listen.is_some() || self == Self::default(),
            "ironic.listen: is missing; name the address of Ironic's API, for example \
             listen = \"127.0.0.1:6385\""
        );
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
        ensure!(
            self.url.as_ref().is_none_or(is_web),
            "ironic.url: must be an http:// or https:// address, for example \
             url = \"https://mesh.example:6385\""
        );
        Ok(self)
    }

    /// Reads the policy and binds the listener. `None` means that Ironic's API is not served.
    ///
    /// # Errors
    /// The policy file is refused or dangerous, or the address cannot be bound.
    pub(crate) async fn bind(&self, is_tls: bool) -> Result<Option<IronicListener>> {
        let Some(address) = self.listen else {
            return Ok(None);
        };
        let policy = self.policy()?;
        let listener = TcpListener::bind(address)
            .await
            .with_context(|| format!("ironic.listen: cannot listen on {address}"))?;
        Ok(Some(IronicListener {
            listener,
            settings: IronicSettings {
                url: self.url.clone(),
                is_tls,
                policy,
                service_project: self.service_project,
            },
        }))
    }

    fn policy(&self) -> Result<OsloPolicy> {
        let Some(path) = &self.policy_file else {
            return Ok(ironic::policy(&PolicyFile::default())?);
        };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("ironic.policy_file: cannot read {name}"))?;
        let file =
            PolicyFile::parse(&text).with_context(|| format!("ironic.policy_file: {name}"))?;
        let lint = PolicyLint::of(&file).with_context(|| format!("ironic.policy_file: {name}"))?;
        let is_allowed = |rule: &DangerousRule| {
            let mut names = self.allow_dangerous.iter();
            names.any(|name| name == ALL || rule.is_named(name))
        };
        let dangerous = lint.dangerous.iter().filter(|rule| !is_allowed(rule));
        let refused: Vec<&str> = dangerous.map(|rule| rule.rule.name).collect();
        ensure!(
            refused.is_empty(),
            "ironic.policy_file: {name} gives projects what belongs to others, by the rules {}; see \
             `metalmesh policy lint {name}`, and correct them or name them in ironic.allow_dangerous",
            refused.join(", ")
        );
        Ok(ironic::policy(&file)?)
    }
}

/// Starts to serve Ironic's API, if it is configured. Returns its part of the line by which the node
/// says that it is ready.
pub(crate) fn spawn(
    bound: Option<IronicListener>,
    context: &Arc<ServiceContext>,
    tls: Option<&Arc<rustls::ServerConfig>>,
    tasks: &mut JoinSet<()>,
    stop: &CancellationToken,
) -> String {
    let Some(IronicListener { listener, settings }) = bound else {
        return String::new();
    };
    let ready = match listener.local_addr() {
        Ok(address) => format!(" ironic={address}"),
        Err(_) => String::new(),
    };
    let facade = IronicFacade::new(Arc::clone(context), settings);
    // The facade answers every request of this listener, so that no method is behind it.
    let gate = Arc::new(ApiGate::new(Arc::clone(context)));
    let front = Front::new(gate, Routes::default()).with_facade(Arc::new(facade));
    tasks.spawn(serve::serve(listener, tls.cloned(), front, stop.clone()));
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(text: &str) -> Result<IronicSection> {
        let section: IronicSection = toml::from_str(text)?;
        section.check()
    }

    #[test]
    fn settings_need_a_listener() {
        assert!(section("").is_ok());
        assert!(section("listen = '127.0.0.1:6385'").is_ok());
        for (text, field) in [
            (
                "service_project = '70e5e25a-2ca2-4cb1-8ae8-7d8739cee205'",
                "ironic.listen",
            ),
            // A name is that of a project in each tenant that wants it.
            (
                "listen = '127.0.0.1:6385'\nservice_project = 'service'",
                "must be a UUID",
            ),
            (
                "listen = '127.0.0.1:6385'\nurl = 'ftp://x.example'",
                "ironic.url",
            ),
            ("colour = 'red'", "colour"),
        ] {
            let error = format!("{:#}", section(text).unwrap_err());
            assert!(error.contains(field), "{text}: {error}");
        }
    }

    #[test]
    fn a_dangerous_file_is_refused_by_the_name_of_its_rule() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.yaml");
        std::fs::write(&path, "\"baremetal:node:get\": \"role:admin\"\n").unwrap();
        let mut section = IronicSection {
            policy_file: Some(path),
            ..IronicSection::default()
        };
        let error = format!("{:#}", section.policy().unwrap_err());
        assert!(error.contains("baremetal:node:get"), "{error}");
        section.allow_dangerous = vec!["baremetal:node:get".to_owned()];
        assert!(section.policy().is_ok());
    }
}
