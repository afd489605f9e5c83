//! Checks the objects of a source one by one, and turns them into typed rules.
//!
//! An object that is wrong yields a [`Problem`] and no rule; all others are unaffected. Every text
//! of an object is parsed into an address, a port or a number here, or compared with the few
//! characters that a name may have. No text goes any further.

mod allowed;
mod firewall;
mod fqdns;
mod management;
mod names;
mod policies;
mod problem;
mod resolver;
mod services;
mod shapes;
mod typed;

use std::collections::BTreeSet;

pub use problem::Problem;
use proto_firewall::{RuleOwner, RuleScope, Violation};

use crate::compile::{ENTRIES_MAX, entry_count};
use crate::config::Config;
use crate::rule::{Rule, RuleSet};
use crate::source::{CollectedObjects, ControllerObjects};

/// Entries that all rules together may have. It bounds the memory of the kernel's maps: about
/// 150 bytes each.
const ENTRIES_TOTAL_MAX: usize = 524_288;
/// The scope of every rule: who may write it, and for which network, was decided by its source.
const SCOPE: RuleScope<'static> = RuleScope {
    owner: RuleOwner::Operator,
    network: None,
};

/// The rules of all sources, and the objects that have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Rules of the objects that are right.
    pub rules: RuleSet,
    /// The other objects.
    pub problems: Vec<Problem>,
}

/// Reads the objects of the configuration file, as if no other source had answered.
#[must_use]
pub fn admit(config: &Config) -> Admitted {
    let collected = CollectedObjects::default();
    match collected.by_controller(config) {
        Ok(objects) => admit_objects(&objects),
        // The operator's limits are not known: nothing passes.
        Err(_) => Admitted::default(),
    }
}

/// Reads the objects of every controller.
#[must_use]
pub fn admit_objects(objects: &ControllerObjects<'_>) -> Admitted {
    let spec = objects.firewall;
    let mut admitted = Admitted::default();
    let allowed = firewall::admit(spec, &mut admitted);
    if let Some(lists) = objects.cwnp {
        policies::admit(lists, &allowed, &mut admitted);
    }
    services::admit(objects.service, &allowed, &mut admitted);
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

impl Admitted {
    /// Removes rules that have too many entries, or an identity that another one has.
    fn bound(&mut self) {
        let mut total = 0_usize;
        let mut seen = BTreeSet::new();
        let mut names = BTreeSet::new();
        let problems = &mut self.problems;
        let mut keep = |rule: &Rule| {
            let count = entry_count(rule);
            let violation = if !seen.insert(rule.id.clone()) {
                Violation::new(
                    "name",
                    "another object has the same name",
                    "rename one of them",
                )
            } else if let Some(violation) = fqdns::too_many(rule, &mut names) {
                violation
            } else if count == 0 {
                let problem = "source, destination and protocol have no address family in common";
                Violation::new("from", problem, "use IPv4 on both sides, or IPv6")
            } else if count > ENTRIES_MAX || total.saturating_add(count) > ENTRIES_TOTAL_MAX {
                let problem = format!(
                    "it needs {count} entries: one for each source, destination and block of \
                     ports; a rule may have {ENTRIES_MAX}, all together {ENTRIES_TOTAL_MAX}"
                );
                Violation::new("ports", &problem, "use shorter prefixes, or fewer ports")
            } else {
                total += count;
                return true;
            };
            problems.push(Problem::of_rule(&rule.id, violation));
            false
        };
        self.rules.operator.retain(&mut keep);
        self.rules.tenant.retain(&mut keep);
    }
}
