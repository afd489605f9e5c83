//! Policy files in the language of oslo.policy, and the rules of Ironic 39.0.0 by default.
//!
//! [`PolicyFile`] reads a file, [`OsloPolicy`] compiles its rules over the registered ones
//! ([`ironic::policy`]), and [`OsloPolicy::decide`] decides one call from [`Credentials`] and a
//! [`PolicyTarget`]. [`PolicyLint`] compares a file with the defaults: which caller gains or loses
//! which call, and which rules open objects of other projects. `docs/reference/ironic-policy.md`
//! describes the language and each difference from oslo.policy.
//!
//! Invariants:
//! - no I/O, no clock: a decision is a function of the policy, the caller and the object;
//! - an absent value equals nothing: an object without an owner is nobody's;
//! - a decision allocates and formats nothing, and visits at most [`DECISION_CHECKS_MAX`] checks;
//! - a rule that does not exist, and a target attribute that does not exist, permit nothing;
//! - a file with a kind of check that is not known, with a circle of rules or beyond a bound is
//!   refused as a whole, by the name of the rule.

mod attribute;
mod credentials;
mod expression;
mod fault;
mod file;
pub mod ironic;
mod lint;
mod match_value;
mod persona;
mod policy;
mod registered;
mod target;
mod template;

pub use attribute::{CallerAttribute, ObjectAttribute};
pub use credentials::{Credentials, TokenScope};
pub use expression::{
    CHECK_BYTES_MAX, CHECKS_MAX, CheckExpression, CheckFault, DEPTH_MAX, SimpleCheck,
};
pub use fault::PolicyFault;
pub use file::{FILE_BYTES_MAX, FileRule, PolicyFile, RULES_MAX};
pub use lint::{AccessChange, CallAccess, DangerKind, DangerousRule, LintRemark, PolicyLint};
pub use persona::{ObjectSituation, Persona, PersonaProject, personas};
pub use policy::{
    DECISION_CHECKS_MAX, DecidingCheck, OsloPolicy, PolicyDecision, PolicyRule, RuleId, RuleOrigin,
};
pub use registered::{OldRule, RegisteredRule, RuleSubject};
pub use target::PolicyTarget;
