use proto_firewall::parts::is_name;
use serde::Deserialize;

use super::Config;
use super::droptailer::DroptailerConfig;
use super::error::ConfigError;
use super::lines::line_of;
use super::self_update::{self, SelfUpdateConfig};
use super::source_name::SourceName;

/// Longest name of a firewall that is followed in a seed, bytes: the limit of Kubernetes.
const NAME_LEN_MAX: usize = 253;

/// A controller that only has a source.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerConfig {
    /// Its source.
    pub source: SourceName,
}

/// The base controller.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FirewallController {
    /// Its source.
    pub source: SourceName,
    /// Replacement of the agent's own program. Disabled if absent.
    #[serde(default)]
    pub self_update: SelfUpdateConfig,
    /// Where drops are sent. Nowhere if absent.
    #[serde(default)]
    pub droptailer: DroptailerConfig,
    /// Addresses that must accept a TCP connection from this host after every change, as
    /// `address:port`. A change that they refute is undone.
    #[serde(default)]
    pub probes: Vec<std::net::SocketAddr>,
}

/// The controllers. One that is absent is disabled.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllersConfig {
    /// The base controller: networks, operator rules, rate limits, source NAT.
    pub firewall: FirewallController,
    /// Services of type `LoadBalancer`.
    #[serde(default)]
    pub service: Option<ControllerConfig>,
    /// Policies of the tenant.
    #[serde(default)]
    pub cwnp: Option<ControllerConfig>,
    /// Reports of counters.
    #[serde(default)]
    pub monitor: Option<ControllerConfig>,
}

impl ControllersConfig {
    /// The sources that controllers use. One may be named twice.
    pub fn sources(&self) -> impl Iterator<Item = SourceName> {
        let others = [&self.service, &self.cwnp, &self.monitor];
        let others = others.into_iter().flatten().map(|own| own.source);
        std::iter::once(self.firewall.source).chain(others)
    }
}

/// Checks that each controller's source is declared, possible and served, and what a controller needs.
pub(super) fn check(config: &Config, text: &str) -> Result<(), ConfigError> {
    let controllers = &config.controllers;
    let of = |controller: &Option<ControllerConfig>| controller.as_ref().map(|own| own.source);
    for (controller, source) in [
        ("firewall", Some(controllers.firewall.source)),
        ("service", of(&controllers.service)),
        ("cwnp", of(&controllers.cwnp)),
        ("monitor", of(&controllers.monitor)),
    ] {
        let Some(source) = source else {
            continue;
        };
        if let Some((problem, remedy)) = source_problem(config, controller, source) {
            return Err(ConfigError::Field {
                line: line_of(text, &["controllers", controller, "source"]),
                field: format!("controllers.{controller}.source"),
                problem,
                remedy,
            });
        }
    }
    self_update::check(&controllers.firewall.self_update, text)
}

fn source_problem(
    config: &Config,
    controller: &str,
    source: SourceName,
) -> Option<(String, String)> {
    let name = source.name();
    if !config.sources.has(source) {
        return Some((
            format!("the source {name} is not declared"),
            format!("add sources.{name}, or name a source that is declared"),
        ));
    }
    if controller == "monitor" && source != SourceName::Shoot {
        return Some((
            format!("the monitor cannot report to {name}"),
            "use shoot, or remove controllers.monitor".to_owned(),
        ));
    }
    if source == SourceName::Seed && controller != "firewall" {
        return Some((
            format!("the seed has nothing for {controller}"),
            "use shoot, metal or static".to_owned(),
        ));
    }
    if source == SourceName::Shoot && controller == "firewall" {
        return Some((
            "the shoot has nothing for the firewall".to_owned(),
            "use seed, metal or static".to_owned(),
        ));
    }
    if source == SourceName::Seed && !is_name(&config.name(), NAME_LEN_MAX) {
        return Some((
            "`name`, or the name of this host, is no name of a Firewall in Kubernetes".to_owned(),
            "set `name` to that of the Firewall".to_owned(),
        ));
    }
    None
}
