//! One call that policies judge.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use control_authz::{Judge, Reach, Ruling, Unjudged};
use proto_public::Method;
use regorus::Value;

use crate::input::document;
use crate::verb::{Fired, Verb};
use crate::{CallFacts, SitePolicies};

/// A call that policies judge. It owns the input document, so no lock on the state is held while the
/// policies are evaluated.
#[derive(Debug)]
pub struct JudgedCall {
    site: Arc<SitePolicies>,
    method: &'static Method,
    input: Value,
}

impl JudgedCall {
    /// Builds the call from its facts. `None` means that no policy judges its method.
    pub fn new(site: &Arc<SitePolicies>, facts: &CallFacts<'_>) -> Option<Self> {
        let policies = site.by_method.get(facts.method.index)?;
        (!policies.places.is_empty()).then(|| Self {
            site: Arc::clone(site),
            method: facts.method,
            input: document(facts, &policies.wants),
        })
    }

    /// The input document, as JSON.
    pub fn input(&self) -> String {
        self.input.to_json_str().unwrap_or_default()
    }

    /// The first rule of a set that fires, in the order of the policies.
    fn first(&self, verb: Verb) -> Result<Option<Ruling>, Unjudged> {
        for place in self.site.of(self.method) {
            let member = &self.site.members[*place];
            let fired = member.fired(verb, self.method, &self.input);
            let fired = fired.inspect_err(|_| {
                member.counts.failed.fetch_add(1, Ordering::Relaxed);
            })?;
            if let Some(Fired { rule, message }) = fired.into_iter().next() {
                let counts = &member.counts;
                let count = match verb {
                    Verb::Deny => &counts.denied,
                    Verb::Allow | Verb::AllowForeign => &counts.allowed,
                };
                count.fetch_add(1, Ordering::Relaxed);
                let rule = format!("{}/{rule}", member.name);
                return Ok(Some(Ruling { rule, message }));
            }
        }
        Ok(None)
    }
}

impl Judge for JudgedCall {
    fn deny(&self) -> Result<Option<Ruling>, Unjudged> {
        self.first(Verb::Deny)
    }

    fn allow(&self, reach: Reach) -> Result<Option<Ruling>, Unjudged> {
        self.first(match reach {
            Reach::Known => Verb::Allow,
            Reach::Foreign => Verb::AllowForeign,
        })
    }
}
