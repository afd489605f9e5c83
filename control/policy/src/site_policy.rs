//! One policy that is in force, with its counters.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use control_authz::Unjudged;
use proto_public::{Method, method};
use regorus::Value;

use crate::Compiled;
use crate::verb::{Fired, Verb};

/// Counters of a policy's evaluations on this node.
#[derive(Debug, Default)]
pub struct PolicyCounts {
    /// Evaluations.
    pub asked: AtomicU64,
    /// Calls that it refused.
    pub denied: AtomicU64,
    /// Calls that it permitted and the table refused.
    pub allowed: AtomicU64,
    /// Evaluations that failed.
    pub failed: AtomicU64,
}

/// A policy that is in force.
#[derive(Debug, Clone)]
pub struct SitePolicy {
    pub(crate) name: String,
    /// Indices of the methods that it judges.
    pub(crate) methods: BTreeSet<usize>,
    /// The compiled policy, or the reason why this program cannot compile it.
    pub(crate) compiled: Result<Arc<Compiled>, String>,
    pub(crate) counts: Arc<PolicyCounts>,
}

impl SitePolicy {
    /// A compiled policy.
    pub fn new(compiled: Compiled) -> Self {
        Self {
            name: compiled.name().to_owned(),
            methods: compiled.methods().clone(),
            compiled: Ok(Arc::new(compiled)),
            counts: Arc::default(),
        }
    }

    /// A stored policy. If this program cannot compile it, the policy refuses the methods that it was
    /// stored with: a node of an older version must not skip a policy that it does not understand.
    pub fn stored(name: &str, source: &str, paths: &BTreeSet<String>) -> Self {
        match Compiled::new(name, source) {
            Ok(compiled) => Self::new(compiled),
            Err(invalid) => Self {
                name: name.to_owned(),
                methods: paths
                    .iter()
                    .filter_map(|path| method(path).map(|method| method.index))
                    .collect(),
                compiled: Err(format!("this program cannot compile it: {invalid}")),
                counts: Arc::default(),
            },
        }
    }

    /// Name of the policy.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reason why this program cannot compile it. `None` means that it can.
    pub fn fault(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Counters of its evaluations on this node.
    pub fn counts(&self) -> &PolicyCounts {
        &self.counts
    }

    /// The rules of a set that fire for a call. A set that may not open the method fires none.
    pub(crate) fn fired(
        &self,
        verb: Verb,
        method: &Method,
        input: &Value,
    ) -> Result<Vec<Fired>, Unjudged> {
        let failed = |reason: String| Unjudged {
            policy: self.name.clone(),
            reason,
        };
        let compiled = self
            .compiled
            .as_ref()
            .map_err(|fault| failed(fault.clone()))?;
        if !compiled.has(verb) || !compiled.may_open(method, verb) {
            return Ok(Vec::new());
        }
        self.counts.asked.fetch_add(1, Ordering::Relaxed);
        compiled.fired(verb, input).map_err(failed)
    }
}
