//! The policies that are in force, indexed by method.

use control_authz::is_judged;
use proto_public::{Method, methods};

use crate::SitePolicy;
use crate::wants::Wants;

/// All policies that are in force.
#[derive(Debug, Default)]
pub struct SitePolicies {
    pub(crate) members: Vec<SitePolicy>,
    /// The policies of each method, by method index.
    pub(crate) by_method: Vec<MethodPolicies>,
}

/// The policies that judge a method.
#[derive(Debug, Default)]
pub(crate) struct MethodPolicies {
    /// Their indices in `members`.
    pub(crate) places: Vec<usize>,
    /// The parts of the input that any of them reads.
    pub(crate) wants: Wants,
}

impl SitePolicies {
    /// Indexes the policies by method.
    pub fn new(members: Vec<SitePolicy>) -> Self {
        let of = |method: &Method| -> MethodPolicies {
            let mut policies = MethodPolicies::default();
            if !is_judged(method) {
                return policies;
            }
            let all = members.iter().enumerate();
            for (at, member) in all.filter(|(_, policy)| policy.methods.contains(&method.index)) {
                policies.places.push(at);
                if let Ok(compiled) = &member.compiled {
                    policies.wants.and(compiled.wants().clone());
                }
            }
            policies
        };
        let by_method = methods().iter().map(of).collect();
        Self { members, by_method }
    }

    /// The policies, in the order of their evaluation.
    pub fn members(&self) -> &[SitePolicy] {
        &self.members
    }

    /// `true` if any policy judges the method.
    pub fn judges(&self, method: &Method) -> bool {
        !self.of(method).is_empty()
    }

    /// `true` if a policy that judges the method reads the request or the object that it names.
    pub fn wants_request(&self, method: &Method) -> bool {
        let policies = self.by_method.get(method.index);
        policies.is_some_and(|judges| {
            !judges.wants.request.is_none() || !judges.wants.resource.is_none()
        })
    }

    /// Indices of the policies that judge the method.
    pub(crate) fn of(&self, method: &Method) -> &[usize] {
        let policies = self.by_method.get(method.index);
        policies.map_or(&[], |judges| judges.places.as_slice())
    }
}
