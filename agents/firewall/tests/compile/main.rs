//! The compiler against a plain evaluator of the rules, and tables of configurations.
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod config;
mod messages;
mod objects;
mod properties;
mod tables;
