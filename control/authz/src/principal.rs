//! What a token says of its bearer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use proto_public::api::v2::{AdminRole, InfraRole, MachineRole, ProjectRole, TenantRole};
use proto_public::{method, methods};

/// The subject that stands for all.
pub(crate) const ALL: &str = "*";
/// Methods a [`MethodSet`] has room for; the contract has fewer than 200.
const METHODS_MAX: usize = 256;

/// How the caller came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrincipalKind {
    /// Without a token.
    #[default]
    Anonymous,
    /// With a token made by the API: it has the rights written down with it.
    Api,
    /// With a token from a log-in: it has the rights that its user has now.
    User,
}

/// The caller of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Principal {
    /// Login of the user; empty when anonymous.
    pub user: Arc<str>,
    /// Id of the token, for the audit trail; never the secret.
    pub token: Arc<str>,
    /// Kind of token.
    pub kind: PrincipalKind,
    /// Rights of an API token. Of a user token they are ignored.
    pub rights: TokenRights,
}

impl Principal {
    /// A caller without a token.
    pub fn anonymous() -> Self {
        Self::default()
    }
}

/// Rights as they are stored with an API token. A subject `*` means every subject that the user
/// can reach when the token is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRights {
    /// Single methods by subject.
    pub permissions: Permissions,
    /// By project uuid or `*`.
    pub project_roles: BTreeMap<String, ProjectRole>,
    /// By tenant login or `*`.
    pub tenant_roles: BTreeMap<String, TenantRole>,
    /// By machine uuid or `*`.
    pub machine_roles: BTreeMap<String, MachineRole>,
    /// Over everything.
    pub admin_role: Option<AdminRole>,
    /// Of an agent of the published stack.
    pub infra_role: Option<InfraRole>,
    /// Of a component: the project that it works for, as an editor of it but for what it lists.
    pub component: Option<String>,
}

/// Methods that a token lists one by one, by subject (`*` for all).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions(BTreeMap<String, MethodSet>);

impl Permissions {
    /// Adds a method by its path; false when there is no such method, which then has no effect.
    pub fn add(&mut self, subject: &str, path: &str) -> bool {
        let Some(method) = method(path) else {
            return false;
        };
        self.0
            .entry(subject.to_owned())
            .or_default()
            .insert(method.index);
        true
    }

    /// Whether the method is listed for this subject or for all.
    pub fn allow(&self, subject: &str, index: usize) -> bool {
        self.list(subject, index) || self.list(ALL, index)
    }

    /// Whether the method is listed for exactly this subject.
    pub(crate) fn list(&self, subject: &str, index: usize) -> bool {
        self.0.get(subject).is_some_and(|set| set.contains(index))
    }

    /// The sets of methods, one for each subject.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &MethodSet> {
        self.0.values()
    }

    /// Drops what is not in `set`, and subjects of which nothing is left.
    pub(crate) fn keep(&mut self, set: &MethodSet) {
        self.0.retain(|_, listed| {
            listed.intersect(set);
            !listed.is_empty()
        });
    }

    /// Whether anything is listed for exactly this subject, or for all subjects.
    pub(crate) fn knows(&self, subject: &str) -> bool {
        self.0.contains_key(subject) || self.0.contains_key(ALL)
    }

    /// Subjects and the paths listed for them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Vec<&'static str>)> {
        self.0
            .iter()
            .map(|(subject, set)| (subject.as_str(), set.paths().collect()))
    }
}

/// A set of methods of the contract.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct MethodSet([u64; METHODS_MAX / 64]);

impl MethodSet {
    /// Adds a method by its index.
    pub fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    /// Whether the method of that index is in.
    pub fn contains(&self, index: usize) -> bool {
        self.0
            .get(index / 64)
            .is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// Whether all of its methods are in `other` too.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        pairs.all(|(own, other)| own & !other == 0)
    }

    /// Drops what is not in `other`.
    pub(crate) fn intersect(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own &= other;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The paths of the methods.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> + '_ {
        methods()
            .iter()
            .filter(|m| self.contains(m.index))
            .map(|m| m.path.as_str())
    }
}

impl fmt::Debug for MethodSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.paths()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_fits_into_a_set() {
        assert!(methods().len() <= METHODS_MAX);
        let mut set = MethodSet::default();
        for method in methods() {
            assert!(!set.contains(method.index));
            set.insert(method.index);
            assert!(set.contains(method.index));
        }
        assert_eq!(set.paths().count(), methods().len());
    }

    #[test]
    fn unknown_methods_are_refused() {
        let mut permissions = Permissions::default();
        assert!(!permissions.add("*", "/metalstack.api.v2.IPService/Steal"));
        assert!(permissions.add("*", "/metalstack.api.v2.IPService/Get"));
        assert_eq!(permissions.iter().count(), 1);
    }
}
