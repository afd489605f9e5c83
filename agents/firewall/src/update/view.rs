use agents_update::{MESH_LEVEL, ProbeJob, UpdateHost, UpdateSettings, WantedRelease};
use base_runtime::Chain;

use super::RELEASE_FIELDS;
use crate::admit::admit;
use crate::config::{Config, FirewallSpec, SourceName};
use crate::source::{CollectedObjects, SourceSet};
use crate::state::{FirewallState, Loaded};

/// The agent as self-update sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateView<'a> {
    /// The configuration file. `None` if it is not valid: an earlier one decides about rules, and not about
    /// programs, whose keys may have been removed since.
    loaded: Option<&'a Loaded>,
    /// The objects of the controller `firewall`. `None` if its source never answered.
    spec: Option<&'a FirewallSpec>,
    /// `true` if that source answers.
    is_connected: bool,
    /// `true` if the rules of the file are in the kernel.
    is_in_force: bool,
    state: &'a FirewallState,
}

impl<'a> UpdateView<'a> {
    /// The view of a configuration and its sources. `is_valid` is `false` if the file is not valid, and the
    /// configuration an earlier one.
    pub(crate) fn new(
        loaded: Option<&'a Loaded>,
        is_valid: bool,
        collected: &'a CollectedObjects,
        sources: &SourceSet,
        state: &'a FirewallState,
    ) -> Self {
        let objects = loaded.map(|loaded| collected.by_controller(&loaded.config));
        let spec = objects.and_then(Result::ok).map(|objects| objects.firewall);
        let source = loaded.map(|loaded| loaded.config.controllers.firewall.source);
        Self {
            loaded: loaded.filter(|_| is_valid),
            spec,
            is_connected: source.is_some_and(|source| sources.is_connected(source)),
            is_in_force: false,
            state,
        }
    }

    /// The same view. `is_in_force` is `true` if the rules of the file are in the kernel.
    pub(crate) fn in_force(self, is_in_force: bool) -> Self {
        Self {
            is_in_force,
            ..self
        }
    }
}

impl UpdateHost for UpdateView<'_> {
    fn settings(&self) -> Option<UpdateSettings> {
        let config = &self.loaded?.config;
        let firewall = &config.controllers.firewall;
        let own = &firewall.self_update;
        Some(UpdateSettings {
            is_enabled: own.enabled,
            keys: own.keys.clone(),
            ca_certificate: own.ca_certificate.clone(),
            local_prefixes: own.local_prefixes.clone(),
            spread_seconds: own.spread_seconds,
            may_be_file: firewall.source == SourceName::Static,
            mesh_level: config.sources.metal.as_ref().map(|_| MESH_LEVEL),
        })
    }

    fn obstacle(&self) -> Option<&'static str> {
        match self.loaded {
            Some(loaded) => loaded.config.controllers.firewall.self_update.obstacle(),
            None => Some(
                "configuration: the file is not valid, and the keys of an earlier one sign no program; \
                 correct it, `metalmesh-firewall check` says where",
            ),
        }
    }

    fn wanted(&self) -> Result<Option<WantedRelease>, String> {
        let Some(spec) = self.spec else {
            return Ok(None);
        };
        WantedRelease::parse(
            &RELEASE_FIELDS,
            spec.controller_version.as_deref(),
            spec.controller_url.as_deref(),
            spec.controller_digest.as_deref(),
        )
    }

    fn is_healthy(&self) -> bool {
        self.is_in_force && self.is_connected
    }

    fn probe_job(&self) -> Option<ProbeJob> {
        self.loaded.map(|loaded| ProbeJob {
            text: loaded.text.clone(),
            refused: count_refused,
        })
    }

    fn keep_before_update(&self) -> Result<(), String> {
        let Some(loaded) = self.loaded else {
            return Ok(());
        };
        let kept = self.state.keep_before_update(&loaded.config);
        kept.map_err(|error| Chain(&error).to_string())
    }

    fn drop_before_update(&self) -> Result<(), String> {
        let dropped = self.state.drop_before_update();
        dropped.map_err(|error| Chain(&error).to_string())
    }
}

/// Counts the objects of a configuration that this program refuses.
fn count_refused(text: &str) -> usize {
    Config::parse(text).map_or(0, |config| admit(&config).problems.len())
}
