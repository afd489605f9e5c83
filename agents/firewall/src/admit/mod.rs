//! Checks the objects of a source one by one, and turns them into typed rules.
//!
//! An object that is wrong yields a [`Problem`] and no rule; all others are unaffected. A network whose
//! object is wrong is closed. Every text of an object is parsed into an address, a port or a number here,
//! or compared with the few characters that a name may have. No text goes any further.

mod admission;
mod allowed;
mod bounds;
mod firewall;
mod fqdns;
mod known;
mod management;
mod names;
mod object_list;
mod policies;
mod prefix_budget;
mod problem;
mod refused_network;
mod resolver;
mod services;
mod shapes;
mod typed;

pub use admission::ObjectAdmission;
pub use problem::Problem;
use proto_firewall::{RuleOwner, RuleScope};
pub use refused_network::unreadable_network;

use crate::config::Config;
use crate::rule::RuleSet;
use crate::source::ControllerObjects;
use known::Outcome;

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
    ObjectAdmission::default().admit(config)
}

/// Reads the objects of every controller.
#[must_use]
pub fn admit_objects(objects: &ControllerObjects<'_>) -> Admitted {
    ObjectAdmission::default().admit_objects(objects)
}

impl Admitted {
    /// Adds the rules of a tenant's object, or its problem.
    fn take_tenant(&mut self, outcome: Outcome) {
        match outcome {
            Ok(rules) => self.rules.tenant.extend(rules),
            Err(problem) => self.problems.push(problem),
        }
    }
}
