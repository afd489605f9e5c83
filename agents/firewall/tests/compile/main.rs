//! The compiler against a plain evaluator of the rules, and tables of configurations.
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

mod config;
mod input;
mod objects;
mod properties;
mod tables;
