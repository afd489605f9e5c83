use super::wanted::WantedRelease;
use crate::config::{FirewallSpec, SelfUpdateConfig};
use crate::source::{CollectedObjects, SourceSet};
use crate::state::Loaded;

/// The agent as self-update sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateView<'a> {
    /// The configuration file. `None` if it is not valid: an earlier one decides about rules, and not about
    /// programs, whose keys may have been removed since.
    pub(super) loaded: Option<&'a Loaded>,
    /// The objects of the controller `firewall`. `None` if its source never answered.
    spec: Option<&'a FirewallSpec>,
    /// `true` if that source answers.
    pub(super) is_connected: bool,
}

impl<'a> UpdateView<'a> {
    /// The view of a configuration and its sources. `is_valid` is `false` if the file is not valid, and the
    /// configuration an earlier one.
    pub(crate) fn new(
        loaded: Option<&'a Loaded>,
        is_valid: bool,
        collected: &'a CollectedObjects,
        sources: &SourceSet,
    ) -> Self {
        let objects = loaded.map(|loaded| collected.by_controller(&loaded.config));
        let spec = objects.and_then(Result::ok).map(|objects| objects.firewall);
        let source = loaded.map(|loaded| loaded.config.controllers.firewall.source);
        Self {
            loaded: loaded.filter(|_| is_valid),
            spec,
            is_connected: source.is_some_and(|source| sources.is_connected(source)),
        }
    }

    /// The settings of self-update.
    pub(super) fn config(&self) -> Option<&'a SelfUpdateConfig> {
        self.loaded
            .map(|loaded| &loaded.config.controllers.firewall.self_update)
    }

    /// The reason why nothing is replaced although it is to be. `None` if there is none.
    pub(super) fn obstacle(&self) -> Option<&'static str> {
        match self.config() {
            Some(config) => config.obstacle(),
            None => Some(
                "configuration: the file is not valid, and the keys of an earlier one sign no program; \
                 correct it, `metalmesh-firewall check` says where",
            ),
        }
    }

    /// The release that the source names. `None` if it names none.
    ///
    /// # Errors
    /// The field, the problem and a remedy.
    pub(super) fn wanted(&self) -> Result<Option<WantedRelease>, String> {
        let Some(spec) = self.spec else {
            return Ok(None);
        };
        WantedRelease::parse(
            spec.controller_version.as_deref(),
            spec.controller_url.as_deref(),
            spec.controller_digest.as_deref(),
        )
    }
}
