use tokio::task::JoinSet;

use super::SourceLink;
use super::kubernetes::{ShootParts, run_seed, run_shoot};
use super::metal::{MetalSettings, run_metal};
use crate::config::{Config, KubernetesSource, SourceName};

/// Everything that a source depends on. One that runs is started anew when it changes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SourceSpec {
    /// The cluster with the `Firewall`.
    Seed {
        source: KubernetesSource,
        /// Name of the `Firewall`.
        name: String,
    },
    /// The tenant's cluster.
    Shoot {
        source: KubernetesSource,
        parts: ShootParts,
    },
    /// Control of this site.
    Metal(MetalSettings),
}

impl SourceSpec {
    /// The settings that a source of a configuration depends on. `None` if it runs no task, because it is in the
    /// file.
    pub(super) fn of(config: &Config, name: SourceName) -> Option<Self> {
        let controllers = &config.controllers;
        let sources = &config.sources;
        match name {
            SourceName::Seed => Some(Self::Seed {
                source: sources.seed.clone()?,
                name: config.name(),
            }),
            SourceName::Shoot => {
                let is_shoot = |source: Option<SourceName>| source == Some(SourceName::Shoot);
                Some(Self::Shoot {
                    source: sources.shoot.clone()?,
                    parts: ShootParts {
                        policies: is_shoot(controllers.cwnp.as_ref().map(|own| own.source)),
                        services: is_shoot(controllers.service.as_ref().map(|own| own.source)),
                        monitor: controllers.monitor.is_some().then(|| config.name()),
                    },
                })
            }
            SourceName::Metal => sources
                .metal
                .as_ref()
                .map(MetalSettings::of)
                .map(Self::Metal),
            SourceName::Static => None,
        }
    }

    /// Starts the source's task.
    pub(super) fn start(self, link: SourceLink, tasks: &mut JoinSet<()>) {
        match self {
            Self::Seed { source, name } => tasks.spawn(run_seed(source, name, link)),
            Self::Shoot { source, parts } => tasks.spawn(run_shoot(source, parts, link)),
            Self::Metal(settings) => tasks.spawn(run_metal(settings, link)),
        };
    }
}
