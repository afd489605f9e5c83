//! Site policies: rules in Rego that a site puts beside the table of the contract.
//!
//! A policy is one module. It says which `methods` it judges, and in the sets `deny`, `allow` and
//! `allow_foreign` which rules, by their names, decide a call; what it may do at most is kept by
//! `control-authz`. [`Compiled::new`] reads, checks and compiles one, [`check`] also runs its own
//! tests, [`Site`] holds all that are in force, indexed by method, and [`Call`] is one call that
//! they judge. [`compare`] says what a set of policies changes for whom.
//!
//! Invariants:
//! - what is judged depends on the input document alone: no clock, network, file, randomness;
//! - a policy cannot run for ever or sink the stack: it has no recursion, a bound of its depth, of
//!   its steps and of its time, and calls only functions that are listed here;
//! - a policy that cannot be evaluated refuses what it judges, and nothing else;
//! - a method that no policy names costs one look into a vector.

mod compile;
mod diff;
mod input;
mod invalid;
mod samples;
mod scan;
mod site;
mod trial;
mod wants;

pub use compile::{Compiled, SOURCE_BYTES_MAX, STEPS_MAX};
pub use diff::{OutcomeChange, CallOutcome, compare, decide_sample};
pub use input::{CallFacts, Moment, Relation, Resource};
pub use invalid::Invalid;
pub use samples::{MOMENTS, Sample, callers};
pub use site::{JudgedCall, PolicyCounts, SitePolicy, SitePolicies};
pub use trial::{Checked, check};
