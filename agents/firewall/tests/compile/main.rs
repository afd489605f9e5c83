//! The compiler against a plain evaluator of the rules, and tables of configurations.
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod absent;
mod admission;
mod config;
mod control;
mod flows;
mod input;
mod kubeconfig;
mod messages;
mod objects;
mod properties;
mod random_rules;
mod refused;
mod source_networks;
mod sources;
mod tables;
