use super::known::KnownObjects;
use super::policies::{self, PolicyLimits};
use super::prefix_budget::PrefixBudget;
use super::refused_network::unreadable_network;
use super::{Admitted, firewall, services};
use crate::config::Config;
use crate::rule::RuleSet;
use crate::source::{CollectedObjects, ControllerObjects};

/// Checks the objects of all sources. One that remembers checks only what has changed since it was
/// last asked; the result is that of one that does not.
#[derive(Debug, Default)]
pub struct ObjectAdmission {
    operator: KnownObjects,
    tenant: TenantObjects,
}

/// The tenant's objects when they were last admitted.
#[derive(Debug, Default)]
pub(super) struct TenantObjects {
    /// The limits that they were checked against.
    limits: PolicyLimits,
    pub(super) ingress: KnownObjects,
    pub(super) egress: KnownObjects,
    pub(super) policies: KnownObjects,
    pub(super) services: KnownObjects,
}

impl ObjectAdmission {
    /// One that remembers the objects of the last call: its memory is bounded by theirs.
    #[must_use]
    pub fn remembering() -> Self {
        Self {
            operator: KnownObjects::remembering(),
            tenant: TenantObjects {
                limits: PolicyLimits::default(),
                ingress: KnownObjects::remembering(),
                egress: KnownObjects::remembering(),
                policies: KnownObjects::remembering(),
                services: KnownObjects::remembering(),
            },
        }
    }

    /// Reads the objects of the configuration file, as if no other source had answered.
    pub fn admit(&mut self, config: &Config) -> Admitted {
        let collected = CollectedObjects::default();
        match collected.by_controller(config) {
            Ok(objects) => self.admit_objects(&objects),
            // The operator's limits are not known: nothing passes.
            Err(_) => Admitted::default(),
        }
    }

    /// Reads the objects of every controller. Without all interfaces of a network, none of them
    /// ([`unreadable_network`]).
    pub fn admit_objects(&mut self, objects: &ControllerObjects<'_>) -> Admitted {
        let spec = objects.firewall;
        if let Some(problem) = unreadable_network(spec) {
            return Admitted {
                rules: RuleSet::default(),
                problems: vec![problem],
            };
        }
        let mut admitted = Admitted::default();
        // The operator's rules first: a tenant's cannot take their room.
        let mut prefixes = PrefixBudget::default();
        let allowed = firewall::admit(spec, &mut self.operator, &mut prefixes, &mut admitted);
        let limits = PolicyLimits {
            allowed,
            has_resolver: admitted.rules.resolver.is_some(),
        };
        self.tenant.follow(&limits);
        if let Some(lists) = objects.cwnp {
            let known = &mut self.tenant;
            policies::admit(lists, &limits, known, &mut prefixes, &mut admitted);
        }
        let (list, known) = (objects.service, &mut self.tenant.services);
        services::admit(list, &limits.allowed, known, &mut prefixes, &mut admitted);
        if spec.log_accepted_connections {
            for rule in &mut admitted.rules.tenant {
                rule.log = true;
            }
        }
        admitted.bound();
        let proxy = admitted.rules.needed_resolver();
        admitted.rules.input.dns_port = proxy.map(|proxy| proxy.port);
        admitted
    }
}

impl TenantObjects {
    /// Forgets everything if it was checked against other limits.
    fn follow(&mut self, limits: &PolicyLimits) {
        if self.limits == *limits {
            return;
        }
        self.limits = limits.clone();
        for known in [
            &mut self.ingress,
            &mut self.egress,
            &mut self.policies,
            &mut self.services,
        ] {
            known.forget();
        }
    }
}
