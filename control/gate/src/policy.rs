//! Site policies at this node: compiled once per change, evaluated for each call of the methods
//! they name. Calls of other methods cost one lookup.

use std::sync::{Arc, PoisonError, RwLock};

use control_authz::is_judged;
use control_policy::{SitePolicies, SitePolicy};
use control_state::{Policy, Tables};
use proto_public::Method;

/// The policies of a node.
#[derive(Debug, Default)]
pub struct Policies(RwLock<Arc<Loaded>>);

/// The compiled policies and their stored sources.
#[derive(Debug, Default)]
struct Loaded {
    stored: Vec<Arc<Policy>>,
    site: Arc<SitePolicies>,
}

/// Policies that this node has not compiled yet.
#[derive(Debug)]
pub struct Stale(Vec<Arc<Policy>>);

impl Policies {
    /// The policies that judge a method. `None` means that the role table alone decides.
    ///
    /// # Errors
    /// [`Stale`] if they must be compiled first with [`Policies::compile`].
    pub fn of(&self, tables: &Tables, method: &Method) -> Result<Option<Arc<SitePolicies>>, Stale> {
        let table = tables.table::<Policy>();
        if table.is_empty() || !is_judged(method) {
            return Ok(None);
        }
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut stored = table.values().map(|slot| &slot.value);
        // Pointers are enough: the state replaces the `Arc` of an object that changes.
        let same = |policy: &Arc<Policy>| stored.next().is_some_and(|is| Arc::ptr_eq(is, policy));
        if loaded.stored.len() != table.len() || !loaded.stored.iter().all(same) {
            return Err(Stale(tables.all::<Policy>().cloned().collect()));
        }
        let judges = loaded.site.judges(method);
        Ok(judges.then(|| Arc::clone(&loaded.site)))
    }

    /// Compiles the policies that changed.
    pub fn compile(&self, Stale(stored): Stale) {
        // No lock is held while compiling: concurrent calls compile the same policies rather than
        // wait, and the last to finish wins.
        let loaded = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let known = |policy: &Arc<Policy>| {
            let mut pairs = loaded.stored.iter().zip(loaded.site.members());
            let known = pairs.find(|(is, _)| is.source == policy.source && is.name == policy.name);
            known.map(|(_, member)| member.clone())
        };
        let member = |policy: &Arc<Policy>| {
            known(policy).unwrap_or_else(|| {
                let member = SitePolicy::stored(&policy.name, &policy.source, &policy.methods);
                if let Some(fault) = member.fault() {
                    tracing::error!(
                        policy = policy.name,
                        error = fault,
                        "a policy does not compile: it denies every call that it names"
                    );
                }
                member
            })
        };
        let site = Arc::new(SitePolicies::new(stored.iter().map(member).collect()));
        let mut place = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *place = Arc::new(Loaded { stored, site });
    }

    /// The policies that judge a method; compiles them inline if they are stale.
    pub(crate) fn now(&self, tables: &Tables, method: &Method) -> Option<Arc<SitePolicies>> {
        match self.of(tables, method) {
            Ok(site) => site,
            Err(stale) => {
                self.compile(stale);
                self.of(tables, method).ok().flatten()
            }
        }
    }

    /// A policy as compiled on this node; `None` before it was.
    pub fn member(&self, policy: &Arc<Policy>) -> Option<SitePolicy> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut pairs = loaded.stored.iter().zip(loaded.site.members());
        let found = pairs.find(|(is, _)| Arc::ptr_eq(is, policy));
        found.map(|(_, member)| member.clone())
    }
}
