use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ControllerObjects, SourceObjects};
use crate::config::{Config, FirewallSpec, SourceName};
use crate::routes::RouteDistance;

/// The operator's objects of a static source that has none.
static NO_SPEC: FirewallSpec = FirewallSpec::empty();

/// The source of the controller `firewall` has not answered yet, and there is no last good snapshot
/// of it. No rule can be made: the limits of tenants are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the source {} of controllers.firewall has not answered yet, and nothing of it was kept",
    .0.name()
)]
pub struct MissingSource(pub SourceName);

/// The last snapshot of each source but `static`, whose objects are in the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectedObjects {
    snapshots: BTreeMap<SourceName, Arc<SourceObjects>>,
}

impl CollectedObjects {
    /// Replaces the snapshot of a source. Returns `true` if it is another one.
    pub fn replace(&mut self, source: SourceName, objects: Arc<SourceObjects>) -> bool {
        let old = self.snapshots.insert(source, Arc::clone(&objects));
        old.is_none_or(|old| !Arc::ptr_eq(&old, &objects) && old != objects)
    }

    /// The snapshot of a source. `None` if it never answered.
    #[must_use]
    pub fn of(&self, source: SourceName) -> Option<&Arc<SourceObjects>> {
        self.snapshots.get(&source)
    }

    /// The distance of the firewall's routes, of the source of the controller `firewall`. `None` if
    /// that says nothing about it.
    #[must_use]
    pub fn distance(&self, config: &Config) -> Option<RouteDistance> {
        self.of(config.controllers.firewall.source)?.distance
    }

    /// The sources that have a snapshot, with it.
    pub fn snapshots(&self) -> impl Iterator<Item = (SourceName, &Arc<SourceObjects>)> {
        self.snapshots
            .iter()
            .map(|(source, objects)| (*source, objects))
    }

    /// The objects of each controller of a configuration, from the controller's source.
    ///
    /// # Errors
    /// The source of the controller `firewall` has no snapshot.
    pub fn by_controller<'a>(
        &'a self,
        config: &'a Config,
    ) -> Result<ControllerObjects<'a>, MissingSource> {
        let controllers = &config.controllers;
        let fixed = config.sources.static_.as_ref();
        let of = |source: SourceName| self.snapshots.get(&source);
        let firewall = match controllers.firewall.source {
            SourceName::Static => fixed
                .and_then(|fixed| fixed.firewall.as_ref())
                .unwrap_or(&NO_SPEC),
            other => &of(other).ok_or(MissingSource(other))?.firewall,
        };
        let cwnp = controllers
            .cwnp
            .as_ref()
            .and_then(|controller| match controller.source {
                SourceName::Static => fixed.and_then(|fixed| fixed.cwnp.as_ref()),
                other => of(other).map(|objects| &objects.cwnp),
            });
        let service = controllers
            .service
            .as_ref()
            .and_then(|controller| match controller.source {
                SourceName::Static => fixed.map(|fixed| fixed.service.as_slice()),
                other => of(other).map(|objects| objects.service.as_slice()),
            });
        Ok(ControllerObjects {
            firewall,
            cwnp,
            service: service.unwrap_or(&[]),
        })
    }
}
