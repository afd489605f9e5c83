//! Single methods that an API token lists.

use std::collections::BTreeMap;
use std::fmt;

use proto_public::{method, methods};

/// The subject that stands for every subject.
pub(crate) const ALL: &str = "*";
/// Capacity of a [`MethodSet`], methods. The contract has fewer than 300; a test fails when it
/// outgrows the set.
const METHODS_MAX: usize = 512;

/// Methods that a token lists one by one, by subject (`*` means every subject).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions(BTreeMap<String, MethodSet>);

impl Permissions {
    /// Adds a method by its path. Returns `false` and adds nothing if the contract has no such method.
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

    /// `true` if the method is listed for this subject or for all.
    pub fn allow(&self, subject: &str, index: usize) -> bool {
        self.list(subject, index) || self.list(ALL, index)
    }

    /// `true` if the method is listed for exactly this subject.
    pub(crate) fn list(&self, subject: &str, index: usize) -> bool {
        self.0.get(subject).is_some_and(|set| set.contains(index))
    }

    /// The method sets, one per subject.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &MethodSet> {
        self.0.values()
    }

    /// Removes methods that are not in `set`, and subjects without any method left.
    pub(crate) fn keep(&mut self, set: &MethodSet) {
        self.0.retain(|_, listed| {
            listed.intersect(set);
            !listed.is_empty()
        });
    }

    /// `true` if any method is listed for exactly this subject, or for all subjects.
    pub(crate) fn knows(&self, subject: &str) -> bool {
        self.0.contains_key(subject) || self.0.contains_key(ALL)
    }

    /// Subjects with the paths listed for them.
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

    /// `true` if the set contains the method with that index.
    pub fn contains(&self, index: usize) -> bool {
        self.0
            .get(index / 64)
            .is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// `true` if `other` contains all of its methods.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        pairs.all(|(own, other)| own & !other == 0)
    }

    /// Removes methods that are not in `other`.
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
