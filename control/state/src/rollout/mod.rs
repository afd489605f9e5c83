//! Rollouts: agents get a release in waves, each after the agents before it have proven it.

pub(crate) mod apply;
mod bmc_reach;
pub(crate) mod command;
pub(crate) mod decision;
#[cfg(test)]
mod decision_tests;
pub(crate) mod entity;
pub(crate) mod judged;
pub(crate) mod read;
pub(crate) mod report;
mod standing;
mod tenant_votes;
#[cfg(test)]
mod tenant_votes_tests;
