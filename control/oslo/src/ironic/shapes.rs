//! The shapes of rules, by the object that their calls are about.

use crate::credentials::TokenScope;
use crate::registered::{RegisteredRule, RuleSubject};

pub(super) const SYSTEM: &[TokenScope] = &[TokenScope::System];
pub(super) const PROJECT: &[TokenScope] = &[TokenScope::Project];

pub(super) const fn node(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::Node, name, check, calls)
}

pub(super) const fn allocation(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::Allocation, name, check, calls)
}

pub(super) const fn runbook(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::Runbook, name, check, calls)
}

/// A rule whose calls are limited to the caller's project.
pub(super) const fn own(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::OwnProject, name, check, calls)
}

/// A rule whose calls reach every project.
pub(super) const fn every(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::EveryProject, name, check, calls)
}

/// A rule for ramdisks.
pub(super) const fn ramdisk(
    name: &'static str,
    check: &'static str,
    calls: &'static [&'static str],
) -> RegisteredRule {
    RegisteredRule::of_calls(RuleSubject::Ramdisk, name, check, calls)
}

/// A mask of passwords.
pub(super) const fn secrets(name: &'static str, check: &'static str) -> RegisteredRule {
    let mut rule = RegisteredRule::part(name, check);
    rule.subject = RuleSubject::Secrets;
    rule
}
