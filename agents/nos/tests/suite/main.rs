//! One suite that every back-end passes. Linux needs root; it says so and passes without.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test's helpers")]

mod back_ends;
mod drift;
mod namespace;
mod orchagent;
mod redis;
mod run;
mod sonic;
mod states;
