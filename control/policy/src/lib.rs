//! Site policies: rules in Rego that a site adds to the table of the contract.
//!
//! A policy is one module. It names in `methods` the methods that it judges, and in the sets `deny`,
//! `allow` and `allow_foreign` the rules that decide a call; `control-authz` limits their effect.
//! [`Compiled::new`] parses, checks and compiles one policy and [`check`] also runs its own tests.
//! [`SitePolicies`] holds all policies in force, indexed by method, and [`JudgedCall`] is one call that
//! they judge. [`compare`] lists the effect of a change of policies.
//!
//! Invariants:
//! - a decision depends on the input document alone: not on clock, network, files or randomness;
//! - an evaluation is bounded: rules do not recur, their depth, the number of instructions and the
//!   time are limited, and only the functions listed in `scan` can be called;
//! - a policy that cannot be evaluated refuses the methods that it judges, and no others;
//! - a method that no policy judges costs one vector lookup.

mod compile;
mod diff;
mod engine;
mod facts;
mod input;
mod invalid;
mod judged_call;
mod judged_methods;
mod moment;
mod relation;
mod samples;
mod scan;
mod site;
mod site_policy;
mod trial;
mod verb;
mod wants;

pub use compile::{Compiled, SOURCE_BYTES_MAX, STEPS_MAX};
pub use diff::{CallOutcome, OutcomeChange, compare, decide_sample};
pub use facts::{CallFacts, Resource};
pub use invalid::Invalid;
pub use judged_call::JudgedCall;
pub use moment::Moment;
pub use relation::Relation;
pub use samples::{MOMENTS, Sample, callers};
pub use site::SitePolicies;
pub use site_policy::{PolicyCounts, SitePolicy};
pub use trial::{Checked, check};
