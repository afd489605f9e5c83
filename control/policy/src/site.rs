//! The policies that are in force, and one call that they judge.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use control_authz::{Judge, Reach, Ruling, Unjudged, is_judged};
use proto_public::{Method, method, methods};
use regorus::Value;

use crate::Compiled;
use crate::compile::{Fired, Verb};
use crate::input::{CallFacts, document};
use crate::wants::Wants;

/// How often a policy was asked at this node, and what came of it.
#[derive(Debug, Default)]
pub struct PolicyCounts {
    /// Evaluations.
    pub asked: AtomicU64,
    /// Calls that it refused.
    pub denied: AtomicU64,
    /// Calls that it permitted beyond the table.
    pub allowed: AtomicU64,
    /// Evaluations that failed.
    pub failed: AtomicU64,
}

/// A policy that is in force.
#[derive(Debug, Clone)]
pub struct SitePolicy {
    name: String,
    methods: BTreeSet<usize>,
    /// Or why this program cannot evaluate it.
    compiled: Result<Arc<Compiled>, String>,
    counts: Arc<PolicyCounts>,
}

impl SitePolicy {
    /// A policy that was compiled.
    pub fn new(compiled: Compiled) -> Self {
        Self {
            name: compiled.name().to_owned(),
            methods: compiled.methods().clone(),
            compiled: Ok(Arc::new(compiled)),
            counts: Arc::default(),
        }
    }

    /// A policy as it is stored. When this program cannot compile it, it refuses the methods that
    /// it was stored with.
    pub fn stored(name: &str, source: &str, paths: &BTreeSet<String>) -> Self {
        match Compiled::new(name, source) {
            Ok(compiled) => Self::new(compiled),
            Err(invalid) => Self {
                name: name.to_owned(),
                methods: paths
                    .iter()
                    .filter_map(|path| method(path).map(|it| it.index))
                    .collect(),
                compiled: Err(format!("this program cannot compile it: {invalid}")),
                counts: Arc::default(),
            },
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Why this program cannot evaluate it, if so.
    pub fn fault(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// What came of it at this node.
    pub fn counts(&self) -> &PolicyCounts {
        &self.counts
    }

    fn fired(&self, verb: Verb, method: &Method, input: &Value) -> Result<Vec<Fired>, Unjudged> {
        let failed = |reason: String| Unjudged {
            policy: self.name.clone(),
            reason,
        };
        let compiled = self.compiled.as_ref().map_err(|it| failed(it.clone()))?;
        if !compiled.has(verb) || !compiled.may_open(method, verb) {
            return Ok(Vec::new());
        }
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        compiled.fired(verb, input).map_err(failed)
    }
}

/// All policies that are in force.
#[derive(Debug, Default)]
pub struct SitePolicies {
    members: Vec<SitePolicy>,
    /// For each method who judges it.
    by_method: Vec<Bench>,
}

/// Who judges a method.
#[derive(Debug, Default)]
struct Bench {
    /// Their places among all.
    places: Vec<usize>,
    /// What any of them looks at.
    wants: Wants,
}

impl SitePolicies {
    /// These policies.
    pub fn new(members: Vec<SitePolicy>) -> Self {
        let of = |method: &Method| -> Bench {
            let mut bench = Bench::default();
            if !is_judged(method) {
                return bench;
            }
            let all = members.iter().enumerate();
            for (at, member) in all.filter(|(_, it)| it.methods.contains(&method.index)) {
                bench.places.push(at);
                if let Ok(compiled) = &member.compiled {
                    bench.wants.and(compiled.wants().clone());
                }
            }
            bench
        };
        let by_method = methods().iter().map(of).collect();
        Self { members, by_method }
    }

    /// The policies, in the order in which they are asked.
    pub fn members(&self) -> &[SitePolicy] {
        &self.members
    }

    /// Whether any policy judges the method.
    pub fn judges(&self, method: &Method) -> bool {
        !self.of(method).is_empty()
    }

    /// Whether a policy that judges the method looks at the request or at what it names.
    pub fn wants_request(&self, method: &Method) -> bool {
        let bench = self.by_method.get(method.index);
        bench.is_some_and(|it| !it.wants.request.is_none() || !it.wants.resource.is_none())
    }

    fn of(&self, method: &Method) -> &[usize] {
        let bench = self.by_method.get(method.index);
        bench.map_or(&[], |it| it.places.as_slice())
    }
}

/// A call that policies judge; it keeps what they need, so that nothing else must be held.
#[derive(Debug)]
pub struct JudgedCall {
    site: Arc<SitePolicies>,
    method: &'static Method,
    input: Value,
}

impl JudgedCall {
    /// A call, out of its facts; none when no policy judges its method.
    pub fn new(site: &Arc<SitePolicies>, facts: &CallFacts<'_>) -> Option<Self> {
        let bench = site.by_method.get(facts.method.index)?;
        (!bench.places.is_empty()).then(|| Self {
            site: Arc::clone(site),
            method: facts.method,
            input: document(facts, &bench.wants),
        })
    }

    /// The input document, as JSON.
    pub fn input(&self) -> String {
        self.input.to_json_str().unwrap_or_default()
    }

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
